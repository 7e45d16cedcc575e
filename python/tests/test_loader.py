# SPDX-License-Identifier: Apache-2.0
"""The elastic loader."""

from __future__ import annotations

import inspect
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy
import pytest
import torch
from conftest import TIMEOUT
from stand_in_agent import StandInAgent

from trainyard.train import DataLoader, Job, LoaderError, MismatchError, WorldSizeError

JobUnder = Callable[..., Job]


class Squares:
    """A sample is its index, and draws of all random generators."""

    def __init__(self, samples: int, sleep: float = 0.0) -> None:
        self._samples = samples
        self._sleep = sleep

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> Any:
        time.sleep(self._sleep)
        draws = torch.tensor([random.random(), numpy.random.rand(), float(torch.rand(()))])
        return torch.tensor(index), draws


class Broken(Squares):
    """A dataset with a sample that cannot be loaded."""

    def __getitem__(self, index: int) -> Any:
        if index == 13:
            raise KeyError("image 13 is no image")
        if index == 17:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


@pytest.fixture
def made() -> Iterator[Callable[..., DataLoader]]:
    """Makes loaders and ends them afterwards."""
    loaders: list[DataLoader] = []

    def make(*arguments: Any, **options: Any) -> DataLoader:
        loaders.append(DataLoader(*arguments, **options))
        return loaders[-1]

    yield make
    for loader in loaders:
        loader.close()


Make = Callable[..., DataLoader]


def as_rank(monkeypatch: pytest.MonkeyPatch, rank: int, world: int) -> Job:
    """A job of several ranks without a process group: what the ranks agree on is left out."""
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))
    monkeypatch.setattr("trainyard.train.collective.require", lambda *_: None)
    return Job()


def contents(batches: Any) -> list[Any]:
    return [(batch[0].tolist(), batch[1].tolist()) for batch in batches]


def gone(pid: int) -> bool:
    """Whether the process has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


# ----------------------------------------------------------------------------------- the batches


def test_the_number_of_workers_changes_neither_order_nor_draws(job: Job, made: Make) -> None:
    expected = contents(made(Squares(50), 8, job, seed=3).steps(2))
    assert len(expected) == 14
    assert Counter(index for batch in expected[:7] for index in batch[0]) == Counter(range(50))
    assert expected[0] != expected[7]
    for workers in (1, 2, 3):
        assert contents(made(Squares(50), 8, job, workers=workers, seed=3).steps(2)) == expected


def test_the_workers_change_while_it_runs_and_no_other_is_restarted(job: Job, made: Make) -> None:
    expected = contents(made(Squares(200), 4, job, seed=3).steps(1))
    loader = made(Squares(200), 4, job, workers=1, seed=3)
    changes = {5: 3, 15: 2, 20: 0, 25: 4, 40: 1}
    got, pids = [], {}
    for batch in loader.steps(1):
        got += contents([batch])
        loader.workers = changes.get(loader.iterations, loader.workers)
        pids[loader.iterations] = loader.worker_pids
    assert got == expected
    assert len(pids[5]) == 1 and len(pids[6]) == 3 and len(pids[26]) >= 4
    assert pids[5][0] == pids[6][0] == pids[19][0]
    loader.close()
    assert all(wait_until(lambda one=one: gone(one)) for some in pids.values() for one in some)


@pytest.mark.parametrize("stop_after", [1, 6, 7, 13])
def test_it_goes_on_inside_an_epoch_with_another_number_of_ranks(
    stop_after: int, job: Job, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = made(Squares(51), 8, job, workers=1, seed=3)
    seen: Counter[tuple[int, int]] = Counter()
    for batch in loader.steps(2):
        seen.update((loader.epoch, index) for index in loader.batch.samples)
        if loader.iterations == stop_after:
            break
    state = loader.state_dict()
    for rank in range(3):
        other = made(Squares(51), 8, as_rank(monkeypatch, rank, 3), workers=rank, seed=3)
        other.load_state_dict(state)
        for batch in other.steps(2):
            real = [index for index in batch[0].tolist()][: len(other.batch.samples)]
            assert real == list(other.batch.samples)
            seen.update((other.epoch, index) for index in real)
        assert other.iterations == 14
    assert seen == Counter((epoch, index) for epoch in range(2) for index in range(51))


def test_a_rank_without_samples_takes_part_with_weight_0(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, scales = [], []
    for rank in range(4):
        loader = made(Squares(10), 8, as_rank(monkeypatch, rank, 4), workers=1)
        batches = list(loader.steps(1))
        assert len(batches) == 2 and len(batches[1][0]) == 1
        sizes.append(len(loader.batch.samples))
        scales.append(loader.scale)
        assert loader.batch.global_samples == 2 and loader.batch.ends_epoch
    assert sizes == [1, 1, 0, 0]
    assert scales == [2.0, 2.0, 0.0, 0.0]
    assert float(loader.scale_loss(torch.tensor(5.0))) == 0.0


def test_the_draws_of_the_trainer_are_its_own(job: Job, made: Make) -> None:
    draws = []
    for workers in (0, 2):
        for stage in (None, "load"):
            torch.manual_seed(1)
            random.seed(1)
            numpy.random.seed(1)
            list(made(Squares(20), 4, job, workers=workers, stage=stage).steps(1))
            draws.append((float(torch.rand(())), random.random(), numpy.random.rand()))
    assert len(set(draws)) == 1


def test_drop_last_and_no_shuffle(job: Job, made: Make) -> None:
    loader = made(Squares(10), 4, job, workers=1, drop_last=True, shuffle=False)
    assert [batch[0].tolist() for batch in loader.steps(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]] * 2
    assert loader.is_done(2) and not loader.is_done(3)


@pytest.mark.parametrize("samples, drop_last", [(10, False), (10, True), (12, False), (3, False)])
def test_its_length_is_the_batches_of_an_epoch(
    samples: int, drop_last: bool, job: Job, made: Make
) -> None:
    loader = made(Squares(samples), 4, job, drop_last=drop_last)
    counted = []
    for _ in loader.steps(2):
        counted.append(loader.iterations)
        assert loader.batch.ends_epoch == (loader.iterations % len(loader) == 0)
    assert counted == list(range(1, 2 * len(loader) + 1))


def test_its_length_goes_with_a_batch_that_is_scaled(
    monkeypatch: pytest.MonkeyPatch, made: Make
) -> None:
    state = made(Squares(10), 2, Job(resize="scale-lr")).state_dict()
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = made(Squares(10), 2, Job(resize="scale-lr"))
    loader.load_state_dict(state)
    assert (loader.global_batch_size, len(loader)) == (4, 3)


def test_a_collate_function_of_ones_own(job: Job, made: Make) -> None:
    for workers in (0, 1):
        loader = made(list("abcdef"), 3, job, workers=workers, collate_fn="".join, shuffle=False)
        assert list(loader.steps(1)) == ["abc", "def"]


def test_a_loop_that_is_left_is_taken_up_again(job: Job, made: Make) -> None:
    expected = contents(made(Squares(40), 4, job).steps(1))
    loader = made(Squares(40), 4, job, workers=2)
    got = []
    for batch in loader.steps(1):
        got += contents([batch])
        if loader.iterations == 3:
            break
    assert got + contents(loader.steps(1)) == expected
    assert list(loader.steps(1)) == []


def test_an_older_loop_is_refused_once_a_newer_one_has_begun(job: Job, made: Make) -> None:
    loader = made(Squares(40), 4, job, workers=1)
    older = loader.steps(1)
    next(older)
    next(loader.steps(1))
    with pytest.raises(RuntimeError, match="another iteration of this loader has begun"):
        next(older)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_not_forked_load_the_same(method: str, job: Job, made: Make) -> None:
    expected = contents(made(Squares(24), 4, job).steps(1))
    loader = made(Squares(24), 4, job, workers=2, start_method=method)
    assert contents(loader.steps(1)) == expected


def test_an_unknown_start_method_is_refused(job: Job, made: Make) -> None:
    with pytest.raises(ValueError, match="one of .*spawn.*, not 'vfork'"):
        made(Squares(24), 4, job, workers=2, start_method="vfork")


def test_batches_larger_than_pipes_do_not_block(job: Job, made: Make) -> None:
    class Texts(Squares):
        def __getitem__(self, index: int) -> Any:
            return str(index) * 20000

    for stage in (None, "load"):
        loader = made(Texts(64), 16, job, workers=3, collate_fn=list, stage=stage)
        assert sum(len(batch) for batch in loader.steps(1)) == 64
    loader = made(range(40000), 20000, job, workers=2, collate_fn=list)
    assert sum(len(batch) for batch in loader.steps(1)) == 40000


# -------------------------------------------------------------------------------- stages, shares


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_batch_is_loaded_inside_of_its_stage_and_not_before(
    workers: int, agent: StandInAgent, job_under: JobUnder, made: Make, tmp_path: Path
) -> None:
    log = tmp_path / "loads"

    class Logged(Squares):
        def __getitem__(self, index: int) -> Any:
            with log.open("a") as file:
                file.write(f"{index}\n")
            return super().__getitem__(index)

    job = job_under(agent)
    expected = contents(made(Squares(24), 4, job).steps(1))
    loader = made(Logged(24), 4, job, workers=workers, stage="load")
    got = []
    for batch in loader.steps(1):
        got += contents([batch])
        assert len(log.read_text().split()) == 4 * loader.iterations
        with job.stage("forward"):
            pass
    assert got == expected
    assert agent.wait_for(lambda: len(agent.heard[0].stages) == 24)
    assert agent.heard[0].stages[:4] == [
        ("go", "load"), ("end", "load"), ("go", "forward"), ("end", "forward")
    ]


def test_tune_lines_change_the_workers_of_a_running_loader(
    agent: StandInAgent, job_under: JobUnder, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_LOADER_WORKERS", "2")
    job = job_under(agent)
    loader = made(Squares(400), 4, job, workers=1)
    assert loader.workers == 2
    for _ in loader.steps(1):
        if loader.iterations == 10:
            agent.tune(loader_workers=3)
            assert agent.wait_for(lambda: job.shares_heard == 1)
        elif loader.iterations == 11:
            assert (loader.workers, len(loader.worker_pids)) == (3, 3)
        elif loader.iterations == 20:
            loader.workers = 1
        elif loader.iterations == 21:
            assert loader.workers == 1


@pytest.mark.parametrize("rank, expected", [(0, 2), (1, 2), (2, 1), (3, 1)])
def test_the_node_s_loader_workers_are_divided_among_its_ranks(
    rank: int, expected: int, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    for total, mine in ((6, expected), (2, 1), (0, 0)):
        monkeypatch.setenv("TRAINYARD_LOADER_WORKERS", str(total))
        assert made(Squares(8), 4, as_rank(monkeypatch, rank, 4), workers=9).workers == mine


def test_the_loading_share_tells_waiting_for_data_from_training(job: Job, made: Make) -> None:
    loader = made(Squares(40, sleep=0.01), 4, job)
    for _ in loader.steps(1):
        pass
    assert loader.loading_share > 0.8
    loader = made(Squares(40), 4, job)
    for _ in loader.steps(1):
        time.sleep(0.05)
    assert loader.loading_share < 0.5


_REPORTED = {"loading_share", "iteration_s", "loader_workers"}


def test_the_loading_share_is_reported(
    agent: StandInAgent, job_under: JobUnder, made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard.train.loader._REPORT_EVERY", 0.0)
    list(made(Squares(40), 4, job_under(agent)).steps(1))
    assert agent.wait_for(lambda: set(agent.heard[0].metrics) == _REPORTED)
    assert agent.heard[0].metrics["loader_workers"] == 0
    assert 0 <= agent.heard[0].metrics["loading_share"] <= 1


def test_the_loading_share_of_a_short_training_is_reported_at_its_end(
    agent: StandInAgent, job_under: JobUnder, made: Make
) -> None:
    for number, _ in enumerate(made(Squares(40), 4, job_under(agent)).steps(1)):
        if number == 3:
            break
    assert agent.wait_for(lambda: set(agent.heard[0].metrics) == _REPORTED)


# ------------------------------------------------------------------------------- what goes wrong


def test_an_error_in_a_worker_comes_with_its_traceback(job: Job, made: Make) -> None:
    loader = made(Broken(16), 4, job, workers=2, shuffle=False)
    with pytest.raises(LoaderError) as raised:
        list(loader.steps(1))
    assert "in __getitem__" in str(raised.value)
    assert "KeyError: 'image 13 is no image'" in str(raised.value)
    assert loader.iterations == 3


def test_a_worker_that_is_killed_is_told_with_its_samples(job: Job, made: Make) -> None:
    class OnlyKilled(Broken):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(0 if index == 13 else index)

    loader = made(OnlyKilled(32), 4, job, workers=2, shuffle=False)
    with pytest.raises(LoaderError, match="died by SIGKILL: out of memory"):
        list(loader.steps(1))


def test_an_idle_worker_that_dies_is_replaced(
    job: Job, made: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    loader = made(Squares(40), 4, job, workers=2, stage="load")
    count = 0
    for batch in loader.steps(1):
        count += len(batch[0])
        if loader.iterations == 3:
            victim = loader.worker_pids[0]
            os.kill(victim, signal.SIGKILL)
            assert wait_until(lambda: gone(victim))
    assert count == 40
    assert "another one takes its place" in capfd.readouterr().err


def test_a_state_of_another_dataset_is_refused(job: Job, made: Make) -> None:
    state = made(Squares(50), 8, job).state_dict()
    with pytest.raises(MismatchError, match="51 samples in the dataset, its saved state 50"):
        made(Squares(51), 8, job).load_state_dict(state)
    with pytest.raises(MismatchError, match="1 as seed, its saved state 0"):
        made(Squares(50), 8, job, seed=1).load_state_dict(state)


def test_a_batch_smaller_than_the_world_is_refused(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = made(Squares(50), 3, as_rank(monkeypatch, 0, 4))
    with pytest.raises(WorldSizeError, match="3 samples cannot be dealt out to 4 workers"):
        next(loader.steps(1))


def test_ranks_without_a_process_group_are_refused(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(WorldSizeError, match="init_process_group"):
        next(made(Squares(50), 4, Job()).steps(1))


def test_numbers_that_give_no_batch_are_refused(job: Job, made: Make) -> None:
    with pytest.raises(ValueError, match="no samples"):
        made(Squares(0), 4, job)
    with pytest.raises(ValueError, match="at least 1"):
        made(Squares(4), 0, job)
    with pytest.raises(ValueError, match="do not fill one batch of 8"):
        made(Squares(4), 8, job, drop_last=True)
    with pytest.raises(ValueError, match="workers is at least 0"):
        made(Squares(4), 2, job, workers=-1)


@pytest.mark.parametrize("option, instead", [
    ({"num_workers": 4}, "num_workers: it is called `workers` here"),
    ({"pin_memory": True}, "pin_memory: batches are not pinned"),
    ({"persistent_workers": True}, "persistent_workers: workers stay"),
    ({"sampler": None}, "sampler: each rank's samples are dealt out by the loader itself"),
    ({"works": 1}, "works: there is no such argument"),
])
def test_arguments_of_torch_are_told_what_to_be(
    option: dict[str, Any], instead: str, job: Job, made: Make
) -> None:
    with pytest.raises(TypeError, match=instead):
        made(Squares(4), 2, job, **option)


def test_each_argument_of_torch_s_loader_is_taken_or_explained(job: Job) -> None:
    theirs = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    ours = inspect.signature(DataLoader.__init__).parameters
    others = {name: None for name in theirs if name not in ours}
    assert "num_workers" in others
    with pytest.raises(TypeError) as caught:
        DataLoader(Squares(4), 2, job, **others)  # type: ignore[arg-type]
    assert "no such argument" not in str(caught.value)


def test_iterating_without_epochs_is_refused(job: Job, made: Make) -> None:
    with pytest.raises(TypeError, match=r"checkpoint.steps\(epochs=N\)"):
        iter(made(Squares(4), 2, job))


# ------------------------------------------------------------------------------------- processes

TRAINER = """
import sys, time
from trainyard.train import Job, DataLoader

class Slow:
    def __len__(self):
        return 100000
    def __getitem__(self, index):
        time.sleep(0.01)
        return index

if __name__ == "__main__":
    job = Job()
    loader = DataLoader(Slow(), 4, job, workers=3, collate_fn=list, start_method=sys.argv[1])
    other = DataLoader(Slow(), 4, job, workers=1, collate_fn=list, start_method=sys.argv[1])
    next(other.steps(1))
    for batch in loader.steps(1):
        if loader.iterations == 5:
            print(*loader.worker_pids, *other.worker_pids, flush=True)
        if job.notice is not None:
            sys.exit("error" in sys.argv)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("end", ["killed", "notice to the whole group"])
def test_no_worker_outlives_its_trainer(method: str, end: str, tmp_path: Path) -> None:
    script = tmp_path / "trainer.py"
    script.write_text(TRAINER)
    trainer = subprocess.Popen([sys.executable, str(script), method], stdout=subprocess.PIPE,
                               text=True, start_new_session=True)
    assert trainer.stdout is not None
    pids = [int(word) for word in trainer.stdout.readline().split()]
    assert len(pids) == 4
    if end == "killed":
        trainer.kill()
    else:
        os.killpg(trainer.pid, signal.SIGTERM)
    assert trainer.wait(TIMEOUT) == (-signal.SIGKILL if end == "killed" else 0)
    for pid in pids:
        assert wait_until(lambda: gone(pid)), f"worker {pid} is left"


SLOW_TO_START = """
import os, sys, time
from trainyard.train import Job, DataLoader

if __name__ != "__main__" and os.path.exists("slow"):
    time.sleep(1000)  # as torch is slow to import, and more so

if __name__ == "__main__":
    loader = DataLoader(range(1000000), 4, Job(), workers=1, collate_fn=list,
                        start_method=sys.argv[1])
    for batch in loader.steps(1):
        if loader.iterations == 5:
            open("slow", "w").close()
            loader.workers = 4
        elif loader.iterations == 10:
            before = loader.worker_pids
            loader.workers = 2
        elif loader.iterations > 10 and len(loader.worker_pids) == 2:
            loader.workers = 0
        elif loader.iterations > 10 and not loader.worker_pids:
            break
        time.sleep(0.01)
    print(*before, flush=True)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_still_starting_leave_at_once(method: str, tmp_path: Path) -> None:
    """On GPUs they are spawned and import torch for seconds, as long as hundreds of iterations."""
    script = tmp_path / "trainer.py"
    script.write_text(SLOW_TO_START)
    trainer = subprocess.Popen([sys.executable, str(script), method], stdout=subprocess.PIPE,
                               text=True, cwd=tmp_path)
    assert trainer.stdout is not None
    pids = [int(word) for word in trainer.stdout.readline().split()]
    assert len(pids) == 4
    for pid in pids:
        assert wait_until(lambda: gone(pid)), f"worker {pid} is left"
    assert trainer.wait(TIMEOUT) == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_the_batch_may_be_set_while_it_goes_on(job: Job, workers: int) -> None:
    loader = DataLoader(list(range(60)), 4, job, workers=workers, seed=1)
    seen: list[int] = []
    sizes: list[int] = []
    for _ in loader.steps(1):
        seen += loader.batch.samples
        sizes.append(loader.batch.global_samples)
        if len(sizes) == 2:
            loader.global_batch_size = 10
    loader.close()
    assert sorted(seen) == list(range(60))
    assert sizes[:2] == [4, 4] and 10 in sizes[2:8]
    assert len(loader) == 6
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"batch_size is at least 1, not {size}"):
            loader.global_batch_size = size
