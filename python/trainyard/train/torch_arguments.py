# SPDX-License-Identifier: Apache-2.0
"""What torch's DataLoader takes and the one of this library does not, and what there is instead."""

from __future__ import annotations

from typing import Collection

_INSTEAD = {
    "num_workers": "it is called `workers` here",
    "sampler": "each rank's samples are dealt out by the loader itself, in an order by `seed`",
    "batch_sampler": "batches are dealt out by the loader itself, in an order by `seed`",
    "generator": "give `seed`: the order of the samples depends on seed and epoch alone",
    "worker_init_fn": "draws are seeded for each sample; what a worker needs, the dataset can "
    "make in its first __getitem__",
    "multiprocessing_context": "it is called `start_method` here: 'fork' or 'spawn'",
    "pin_memory": "batches are not pinned; leave it out, or pin them in the loop: "
    "batch.pin_memory()",
    "pin_memory_device": "batches are not pinned; leave it out",
    "prefetch_factor": "two batches of each worker are loaded ahead; leave it out",
    "persistent_workers": "workers stay from epoch to epoch; leave it out",
    "in_order": "batches always come in order; leave it out",
    "timeout": "a worker that has died is noticed at once; leave it out",
}


def refusal(names: Collection[str]) -> TypeError:
    """The error for arguments that the loader does not have. REQUIRES: names is not empty."""
    parts = [
        f"{name}: {_INSTEAD.get(name, 'there is no such argument')}" for name in sorted(names)
    ]
    return TypeError(f"DataLoader of trainyard.train: {'; '.join(parts)} (docs/pytorch.md)")
