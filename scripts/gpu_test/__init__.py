# SPDX-License-Identifier: Apache-2.0
"""Library, workloads and programs on a GPU of NVIDIA; docs/gpu.md describes the tests."""
