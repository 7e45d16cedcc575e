# SPDX-License-Identifier: Apache-2.0
"""Batches that adapt: the noise that is measured, the batch that is chosen, what is reported and kept.

Times are those of a clock that the trainings set themselves.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest
from stand_in_agent import StandInAgent
from warm_ranks import run_ranks

torch = pytest.importorskip("torch")

from adaptive_trainer import AVERAGING, COMPUTE, INITIAL, Samples, Training  # noqa: E402

from trainyard.train import AdaptiveBatch, DataLoader, Job, MismatchError, cut  # noqa: E402
from trainyard.train.goodput import GradientNoise, Split, StepTimes  # noqa: E402
from trainyard.train.gradient_noise import NoiseMean, Squares  # noqa: E402

TRAINER = Path(__file__).with_name("adaptive_trainer.py")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)


def noise_of(training: Training) -> GradientNoise:
    model = training.adaptive.goodput_model
    assert model is not None
    return model.noise


# ---------------------------------------------------------------------------------- the noise scale


def test_estimates_of_a_gradient_tell_its_square_and_variance() -> None:
    # Two estimates (3, 1) and (1, 3) with 4 samples each: (2, 2) on average.
    squares = Squares(of_each=10.0, of_mean=8.0, count=2, samples=4)
    assert squares.noise(initial=4) == GradientNoise(square=6.0, variance=4.0)
    assert squares.noise(initial=16) == GradientNoise(square=6.0, variance=1.0)


@pytest.mark.parametrize("most_part, passes", [(64, 1), (16, 2), (8, 4)])
def test_a_known_noise_scale_is_measured_to_a_twentieth(
    job: Job, most_part: int, passes: int
) -> None:
    training = Training(job, most_part=most_part, adapt=False)
    assert training.adaptive.split == Split(INITIAL // passes, passes - 1)
    training.run(2500)
    known = training.samples.noise()
    assert noise_of(training).square == pytest.approx(known.square, rel=0.05)
    assert noise_of(training).variance == pytest.approx(known.variance, rel=0.05)
    scale = known.variance / known.square * INITIAL
    assert training.adaptive.noise_scale == pytest.approx(scale, rel=0.07)


def test_the_noise_of_a_larger_batch_is_told_for_the_initial_one(job: Job) -> None:
    training = Training(job, spread=8.0)
    training.run(600)
    assert training.batches[-1] >= 4 * INITIAL
    known = training.samples.noise()
    assert noise_of(training).square == pytest.approx(known.square, rel=0.1)
    assert noise_of(training).variance == pytest.approx(known.variance, rel=0.1)


def test_the_noise_of_adam_is_that_of_the_divided_gradient(job: Job) -> None:
    training = Training(job, optimizer=torch.optim.Adam, adapt=False)
    training.run(1500)
    # Divided by the root of the mean square: at the mean of x both are known by component.
    points = training.samples.points
    square, variance = points.mean(dim=0).pow(2), points.var(dim=0) / INITIAL
    divisor = square + variance
    known = GradientNoise(float((square / divisor).sum()), float((variance / divisor).sum()))
    assert noise_of(training).square == pytest.approx(known.square, rel=0.1)
    assert noise_of(training).variance == pytest.approx(known.variance, rel=0.1)


def test_little_is_not_believed_and_nothing_is_negative() -> None:
    mean = NoiseMean(memory=100)
    for _ in range(29):
        mean.add(GradientNoise(-1.0, 5.0), 1.0)
    assert not mean.is_known
    assert mean.noise == GradientNoise(0.0, 0.0)
    assert mean.noise.gain(8) == 1.0
    mean.add(GradientNoise(-1.0, 5.0), 1.0)
    assert mean.is_known
    assert mean.noise == GradientNoise(0.0, pytest.approx(5.0))


def test_a_gradient_that_overflows_is_passed_over(job: Job) -> None:
    training = Training(job, adapt=False)
    training.samples.points[100:110] = float("inf")
    for batch in training.loader.steps(2):  # without a step, which a script leaves out then, too
        training.adaptive.backward(batch, training.loss_of)
    known = Samples(1.0).noise()
    scale = known.variance / known.square * INITIAL
    assert training.adaptive.noise_scale == pytest.approx(scale, rel=0.2)


# --------------------------------------------------------------------------------------- the choice


def test_the_batch_is_the_best_of_the_model_that_it_has_measured(job: Job) -> None:
    training = Training(job, spread=8.0)
    training.run(600)
    model = training.adaptive.goodput_model
    assert model is not None
    best, _ = model.best(1, 1)
    assert model.goodput(1, 1, training.adaptive.split) >= best / 1.05
    times = model.times
    assert times.compute(48) == pytest.approx(COMPUTE[0] + COMPUTE[1] * 48, rel=0.05)
    assert training.adaptive.split.samples(1) > INITIAL


def test_a_quiet_gradient_keeps_the_initial_batch(job: Job) -> None:
    training = Training(job, spread=0.1)
    training.run(300)
    assert set(training.batches) == {INITIAL}


def test_a_training_that_is_not_to_adapt_measures_and_stays(job: Job) -> None:
    training = Training(job, spread=8.0, adapt=False)
    training.run(300)
    model = training.adaptive.goodput_model
    assert model is not None
    assert model.best(1, 1)[1].samples(1) > INITIAL
    assert set(training.batches) == {INITIAL}


def test_prefetched_batches_are_done_as_they_come(job: Job) -> None:
    """Workers have loaded some of the old size when the new one is chosen."""
    training = Training(job, spread=8.0)
    training.loader.workers = 2
    training.run(400)
    training.loader.close()
    sizes = list(dict.fromkeys(size for size in training.batches if size >= INITIAL))
    assert len(sizes) >= 2
    assert training.batches[-1] == training.adaptive.split.samples(1)


def test_each_sample_is_seen_once_while_batches_grow(job: Job) -> None:
    training = Training(job, spread=8.0)
    seen: list[int] = []
    for batch in training.loader.steps(1):
        training.adaptive.backward(batch, training.loss_of)
        training.adaptive.step()
        seen += training.loader.batch.samples
    assert sorted(seen) == list(range(len(training.samples)))
    assert training.adaptive.split.samples(1) > INITIAL


# ----------------------------------------------------------------------------------------- the step


def test_passes_add_up_to_the_gradient_of_the_batch(job: Job) -> None:
    training = Training(job, most_part=7, adapt=False)  # 5 passes over 7, 7, 7, 7, 7 of 35
    assert training.adaptive.split == Split(7, 4)
    batch = next(training.loader.steps(1))
    loss = training.adaptive.backward(batch, training.loss_of)
    assert loss == pytest.approx(float(0.5 * batch.pow(2).sum(dim=1).mean()), rel=1e-5)
    (parameter,) = training.model.parameters()
    assert torch.allclose(parameter.grad, -batch.mean(dim=0), atol=1e-6)


@pytest.mark.parametrize("name, power", [(None, 1.0), ("square-root", 0.5), ("fixed", 0.0)])
def test_the_learning_rate_goes_with_the_gain_for_one_step(
    job: Job, name: Any, power: float
) -> None:
    training = Training(job, spread=8.0, learning_rate=name)
    training.run(300)
    known = noise_of(training)
    gain = training.adaptive.gain
    assert 1 < gain < training.batches[-1] / INITIAL
    assert gain == pytest.approx(known.gain(training.batches[-1] / INITIAL))
    training.optimizer.param_groups[0]["lr"] = 0.25
    (parameter,) = training.model.parameters()
    before = parameter.detach().clone()
    batch = next(training.loader.steps(1000))
    training.adaptive.backward(batch, training.loss_of)
    training.adaptive.step()
    rate = 0.25 * training.adaptive.gain**power
    assert torch.allclose(parameter, before - rate * parameter.grad, rtol=1e-4)
    assert training.optimizer.param_groups[0]["lr"] == 0.25


def test_progress_counts_initial_batches(job: Job) -> None:
    training = Training(job, adapt=False)
    training.run(100)
    assert training.adaptive.progress == pytest.approx(100)
    grown = Training(job, spread=8.0)
    grown.run(300)
    assert 300 < grown.adaptive.progress < sum(grown.batches) / INITIAL


# -------------------------------------------------------------------------- what is reported and kept


def test_all_metrics_of_the_goodput_are_reported(
    agent: StandInAgent, job_under: Callable[..., Job]
) -> None:
    job = job_under(agent)
    training = Training(job, spread=8.0)
    training.run(400)
    job.loss(1.0)  # there is room for it
    job.close()
    assert agent.wait_for(lambda: "loss" in agent.heard[0].metrics)
    model = training.adaptive.goodput_model
    assert model is not None
    told = {name: value for name, value in agent.heard[0].metrics.items() if name.startswith("goodput.")}
    assert set(told) == set(model.metrics(1))
    assert told["goodput.tried_gpus"] == 1
    assert told["goodput.initial_batch"] == INITIAL
    assert told["goodput.most_part"] == 64
    assert told["goodput.alpha_compute"] == pytest.approx(model.times.alpha_compute, rel=0.1)
    noise = training.samples.noise()
    assert told["goodput.variance"] == pytest.approx(noise.variance, rel=0.15)


def test_there_must_be_room_for_its_metrics(job: Job) -> None:
    for number in range(18):
        job.metric(f"accuracy{number}", 0.5)
    with pytest.raises(ValueError, match="a job has 32 names of metrics at most, not 33"):
        Training(job)


def test_a_training_goes_on_with_what_it_has_measured(job: Job, tmp_path: Path) -> None:
    first = Training(job, spread=8.0, folder=tmp_path)
    first.run(400, first.checkpoint.steps(1000, max_iterations=400))
    again = Training(job, spread=8.0, folder=tmp_path)
    assert again.loader.global_batch_size == INITIAL
    assert again.checkpoint.restore() == 400
    assert again.adaptive.split == first.adaptive.split
    assert again.loader.global_batch_size == first.batches[-1] > INITIAL
    assert again.adaptive.progress == first.adaptive.progress
    assert again.adaptive.noise_scale == first.adaptive.noise_scale
    assert again.adaptive.goodput_model is not None
    # With less memory than before it does not go on with parts that are too large now.
    part = first.adaptive.split.part // 2
    smaller = Training(job, spread=8.0, folder=tmp_path, most_part=part)
    smaller.checkpoint.restore()
    assert smaller.adaptive.split.part <= part


def test_a_checkpoint_with_another_initial_batch_is_refused(job: Job, tmp_path: Path) -> None:
    first = Training(job, folder=tmp_path)
    first.run(5, first.checkpoint.steps(1000, max_iterations=5))
    state = first.adaptive.state_dict() | {"initial_batch": 48}
    with pytest.raises(MismatchError, match="the initial batch is 32, the checkpoint's 48"):
        first.adaptive.load_state_dict(state)


def ranks(
    folder: Path, world: int, iterations: int, spread: float = 8.0, most_part: int = 64
) -> list[dict[str, Any]]:
    said = folder.with_suffix(f".{world}.{iterations}")
    words = (str(folder), str(iterations), str(spread), str(most_part))
    return [json.loads(text) for text in run_ranks(TRAINER, world, said, *words)]


def test_a_known_noise_scale_is_measured_by_two_ranks(tmp_path: Path) -> None:
    """In two passes, of which the first does not average."""
    one, _ = ranks(tmp_path / "c", 2, 1500, spread=1.0, most_part=8)
    assert one["split"] == [8, 1]
    known = Samples(1.0).noise()
    assert one["square"] == pytest.approx(known.square, rel=0.05)
    assert one["variance"] == pytest.approx(known.variance, rel=0.05)


def test_ranks_choose_the_same_batch_and_go_on_on_others(tmp_path: Path) -> None:
    one, two = ranks(tmp_path / "c", 2, 500)
    for name in ("batches", "split", "square", "variance", "times", "gain", "progress"):
        assert one[name] == two[name], name
    assert one["batches"][0] == INITIAL
    assert one["batches"][-1] == 2 * one["split"][0] * (one["split"][1] + 1) >= 3 * INITIAL
    assert one["variance"] == pytest.approx(Samples(8.0).noise().variance, rel=0.1)
    times = StepTimes(**one["times"])
    expected = COMPUTE[0] + COMPUTE[1] * 48
    assert times.compute(48) == pytest.approx(expected, rel=0.05)
    assert times.iteration(1, 2, 48) == pytest.approx(expected + AVERAGING, rel=0.07)
    # On one rank it begins with a batch of what two have measured, which is not the initial one.
    (alone,) = ranks(tmp_path / "c", 1, 520)
    assert alone["begun"] == 500
    assert alone["batches"][0] > INITIAL
    assert alone["progress"] > one["progress"]


# ----------------------------------------------------------------------------- what is done wrong


def make(job: Job, **options: Any) -> AdaptiveBatch:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(list(range(100)), 8, job)
    return AdaptiveBatch(model, optimizer, loader, **options)


@pytest.mark.parametrize("options, message", [
    ({"most_batch": 4, "most_part": 8}, "most_batch is the loader's batch_size, 8, to the samples"),
    ({"most_batch": 200, "most_part": 8}, "of the data set, 100; not 200"),
    ({"most_batch": 64, "most_part": 8, "least_part": 9}, "least_part is 1 to most_part, 8, not 9"),
    ({"most_batch": 64, "most_part": 8, "learning_rate": "linear"}, "learning_rate is one of adasc"),
])
def test_limits_that_do_not_go_together_are_refused(
    job: Job, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(job, **options)


def test_a_batch_that_goes_with_the_world_size_cannot_adapt() -> None:
    job = Job(resize="scale-lr")
    try:
        with pytest.raises(ValueError, match=r"the batch goes with the world size \(scale-lr\)"):
            make(job, most_batch=64, most_part=8)
    finally:
        job.close()


class Pair(NamedTuple):
    images: Any
    labels: Any


def test_batches_of_torchs_default_form_are_cut() -> None:
    images, names = torch.arange(12).reshape(6, 2), list("abcdef")
    batch = {"pair": Pair(images, names), "both": [images, images], "words": ("x", names)[1]}
    piece = cut.samples_of(batch, 2, 4)
    assert piece["pair"].images.tolist() == [[4, 5], [6, 7]]
    assert piece["pair"].labels == piece["words"] == ["c", "d"]
    assert [one.tolist() for one in piece["both"]] == [[[4, 5], [6, 7]]] * 2
    with pytest.raises(TypeError, match="a batch with a int cannot be done in several passes"):
        cut.samples_of((images, 3), 0, 2)


def test_passes_cover_all_samples_and_are_as_many_as_there_are_samples_at_most() -> None:
    assert list(cut.passes(7, 3)) == [(0, 3, False), (3, 5, False), (5, 7, True)]
    assert list(cut.passes(1, 4)) == [(0, 1, True)]
