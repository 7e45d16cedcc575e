#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""fuzz_report.py TARGET FOLDER: one line of a table of what libFuzzer has done with a target: CPU seconds,
executions, the share of inputs that were understood, the edges covered in the files that belong to the
target (and of all that are linked), the inputs kept, findings. Reads FOLDER.log and FOLDER.coverage."""

import re
import sys
from pathlib import Path

# Where the code lies that a target is to reach.
ROOMS = {
    "controller": ("src/live/", "src/model/conditions"),
    "agent": ("src/live/agent", "src/live/data/"),
    "token": ("src/identity/token",),
    "credential": ("src/launcher/credential",),
    "job-line": ("src/supervisor/job/job_protocol",),
    "job-file": ("src/requests/job_file", "src/requests/slurm/slurm_time", "src/io/toml"),
    "job-option": ("src/requests/job_file", "src/requests/slurm/slurm_time"),
    "script": ("src/requests/slurm/",),
    "command-line": ("src/cli/command_line", "src/requests/slurm/slurm_words", "src/cli/numbers",
                     "src/base/name_list"),
    "config": ("src/cli/live/config_file",),
    "trace": ("src/trace/formats/", "src/trace/csv_format", "src/trace/log_format", "src/trace/timestamp",
              "src/trace/trace"),
    "cluster": ("src/trace/clusters/",),
    "preset": ("src/scenario/preset", "src/io/toml"),
    "profiles": ("src/profile/throughput", "src/io/csv"),
}


def last(pattern: str, text: str, default: str = "0") -> str:
    found = re.findall(pattern, text)
    return found[-1] if found else default


def edges(coverage: str, places: tuple) -> tuple[int, int]:
    """Covered and all, of the functions in these files."""
    covered = every = 0
    for line in coverage.splitlines():
        match = re.match(r"(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) .* (\S+?):\d+", line)
        if match and any(place in match[3] for place in places):
            covered += int(match[1])
            every += int(match[2])
    return covered, every


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def main() -> int:
    target, folder = sys.argv[1], Path(sys.argv[2])
    log = Path(f"{folder}.log").read_text(errors="replace")
    coverage = Path(f"{folder}.coverage").read_text(errors="replace")
    runs = int(last(r"stat::number_of_executed_units: (\d+)", log))
    understood, inputs, seconds = map(int, re.findall(
        r"understood: (\d+) of (\d+), in (\d+) s", log + "understood: 0 of 0, in 0 s")[0])
    own = edges(coverage, ROOMS[target])
    cov = last(r"cov: (\d+)", log)
    linked = last(r"\((\d+) inline 8-bit counters\)", log)
    findings = sum(1 for path in folder.iterdir() if re.match(r"(crash|timeout|oom|leak)-", path.name))
    inputs_kept = sum(1 for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{40}", path.name))
    print(f"| {target} | {seconds} | {runs:,} | {share(understood, inputs)} | {own[0]} of {own[1]} "
          f"({share(*own)}) | {cov} of {linked} | {inputs_kept} | {findings} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
