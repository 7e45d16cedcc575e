#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""generated_inputs.py PROGRAM FOLDER: makes the inputs of the published results that need no file of
others (docs/reference.md) in FOLDER: the traces and clusters of Blox, by PROGRAM's generators. Its pools
of jobs stand for Blox' list of Philly jobs, which is not published: the original's rule for durations
drew them."""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

CLUSTER_HEADER = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node"
CLUSTERS = {"data/blox/n{}g4.csv": ("4,16,16", (2, 8, 16, 32))}
SMALL_LARGE = ("--jobs-per-hour", "8", "--bursts")
TRACES = {
    "data/blox/trace_smalllarge_load8_seed1.csv.gz": (19123, SMALL_LARGE),
    "golden/blox/published_smalllarge_load8/trace_load8.csv.gz": (18447, SMALL_LARGE),
    "golden/blox/sim_smalllarge_load8/trace.csv": (521, SMALL_LARGE),
    "golden/blox/sim_1gpu_load9/trace.csv": (289, ("--jobs-per-hour", "9", "--pool", "1gpu.csv")),
    "golden/blox/sim_multigpu_load7/trace.csv": (294, ("--jobs-per-hour", "7", "--pool", "multigpu.csv")),
    "golden/blox/sim_optimus_load3/trace.csv": (140, ("--jobs-per-hour", "3", "--pool", "optimus.csv")),
    "golden/blox/dynamic_switch_tiny/trace.csv": (41, ("--jobs-per-hour", "8", "--pool", "tiny.csv")),
}


def write_pool(path, seed, jobs, several_gpus=False, tiny=False):
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        print("total_iterations,num_gpus", file=file)
        for _ in range(jobs):
            if tiny:  # the bounds are inferred from the jobs
                print(f"{draw.randint(600, 7200)},1", file=file)
                continue
            low, high = (2.5, 2.7) if draw.random() >= 0.8 else (1.5, 2.5)
            duration = 60 * 10 ** draw.uniform(low, high)
            u = draw.random() if several_gpus else 0
            gpus = 8 if u >= 0.95 else 4 if u >= 0.8 else 2 if u >= 0.7 else 1
            print(f"{duration!r},{gpus}", file=file)


def main(arguments):
    if len(arguments) != 2:
        print("usage: scripts/generated_inputs.py PROGRAM FOLDER", file=sys.stderr)
        return 2
    program, folder = Path(arguments[0]).resolve(), Path(arguments[1])
    for name, (node, sizes) in CLUSTERS.items():
        for nodes in sizes:
            path = folder / name.format(nodes)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{CLUSTER_HEADER}\n1,{nodes},{node}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as pools:
        write_pool(f"{pools}/1gpu.csv", 11, 1000)
        write_pool(f"{pools}/multigpu.csv", 13, 1000, several_gpus=True)
        write_pool(f"{pools}/optimus.csv", 17, 500)
        write_pool(f"{pools}/tiny.csv", 41, 500, tiny=True)
        for name, (jobs, options) in TRACES.items():
            path = (folder / name).resolve()
            path.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([program, "trace", "generate", "--style", "blox", "--seed", "1", "--format", "blox",
                            *options, "--jobs", str(jobs), "--out", path],
                           cwd=pools, check=True, stdout=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
