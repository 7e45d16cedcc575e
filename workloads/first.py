# SPDX-License-Identifier: Apache-2.0
"""Imported before anything slow: from here on SIGTERM is a notice and does not end the process.

`JOB` is this process's side of the job protocol (trainyard.train). Where the library is not
installed, the one of this source tree is used.
"""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("trainyard") is None:
    library = Path(__file__).resolve().parent.parent / "python"
    if not (library / "trainyard").is_dir():
        raise SystemExit(f"the Python library trainyard is neither installed nor in {library}; "
                         "install it, or name its folder in PYTHONPATH")
    sys.path.insert(0, str(library))

from trainyard.train import Job

JOB = Job()
