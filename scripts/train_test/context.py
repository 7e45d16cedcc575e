# SPDX-License-Identifier: Apache-2.0
"""What an experiment is given."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from train_test.cluster import Cluster


@dataclass
class Context:
    trainyard: Path
    folder: Path  # for clusters; of this experiment
    seconds: float | None = None  # --seconds: of a run, where an experiment has such
    clusters: list[Cluster] = field(default_factory=list)  # all that were made
    _numbers: Iterator[int] = field(default_factory=count)

    def cluster(self, policy: str, **options: Any) -> Cluster:
        name = policy.partition(":")[0]
        made = Cluster(self.trainyard, self.folder / f"{next(self._numbers)}-{name}", policy,
                       **options)
        self.clusters.append(made)
        return made

    @property
    def leftovers(self) -> int:
        return sum(cluster.leftovers for cluster in self.clusters)
