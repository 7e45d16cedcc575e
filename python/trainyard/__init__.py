# SPDX-License-Identifier: Apache-2.0
"""Trainyard's Python package. Training scripts import `trainyard.train`."""

__version__ = "0.4.0"
