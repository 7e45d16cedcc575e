# SPDX-License-Identifier: Apache-2.0
"""What this machine lets tests do."""

from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")


def has_control_groups() -> bool:
    """Whether the kernel limits memory by control groups here, of version 1 or 2."""
    if (CONTROL_GROUPS / "memory/tasks").exists():
        return True
    controllers = CONTROL_GROUPS / "cgroup.controllers"
    return controllers.exists() and "memory" in controllers.read_text().split()
