# SPDX-License-Identifier: Apache-2.0
"""Experiments with real training on a live cluster of this machine (docs/training.md)."""
