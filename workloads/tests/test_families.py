# SPDX-License-Identifier: Apache-2.0
"""Each family trains in its tiny form on the CPU; two are stopped and go on; real data is read."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path

import numpy
import pytest
from PIL import Image

WORKLOADS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(WORKLOADS.parent / "scripts"), str(Path(__file__).parent)]

import warm  # noqa: E402
from train_test.trail import Trail  # noqa: E402

FAMILIES = {
    "resnet": ["image_classification.py", "--arch", "resnet18", "--epochs", "1"],
    "vgg": ["image_classification.py", "--arch", "vgg16", "--epochs", "2"],
    "googlenet": ["image_classification.py", "--arch", "googlenet", "--samples", "320", "--epochs",
                  "1", "--lr", "0.003"],
    "inception": ["image_classification.py", "--arch", "inception", "--samples", "160", "--epochs",
                  "1", "--batch", "8", "--lr", "0.0003"],
    "mobilenet": ["image_classification.py", "--arch", "mobilenet", "--epochs", "2"],
    "shufflenet": ["image_classification.py", "--arch", "shufflenet", "--epochs", "1"],
    "bert": ["transformer.py", "--arch", "bert", "--epochs", "2"],
    "gpt2": ["transformer.py", "--arch", "gpt2", "--epochs", "1"],
    "lstm": ["lstm.py", "--epochs", "1"],
    "speech": ["speech.py", "--epochs", "2"],
    "ncf": ["recommendation.py"],
    "dqn": ["reinforcement.py"],
    "synthetic": ["synthetic.py"],
    "adaptive": ["synthetic.py", "--most-batch", "64", "--most-part", "8", "--choose-every", "1"],
}


def command_of(arguments: list[str]) -> list[str]:
    return [sys.executable, "-B", str(WORKLOADS / arguments[0]), "--device", "cpu", "--workers",
            "0", *arguments[1:]]


def environment_of(folder: Path, rank: int = 0, world_size: int = 1, attempt: int = 1,
                   port: int = 0) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
    return kept | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "TRAINYARD_ATTEMPT": str(attempt), "TRAINYARD_CHECKPOINT_DIR": str(folder)}


def train(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return warm.run(command_of(list(arguments))[2:], environment_of(folder), folder, timeout=240)


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_falls(family: str, tmp_path: Path) -> None:
    file = tmp_path / "losses.json"
    done = train(tmp_path, *FAMILIES[family], "--losses", str(file))
    assert done.returncode == 0, done.stderr
    losses = json.loads(file.read_text())
    quarter = len(losses) // 4
    assert quarter >= 4
    assert sum(losses[-quarter:]) < sum(losses[:quarter])


# ------------------------------------------------------------------------------- stopping, resizing


def start(folder: Path, arguments: list[str], rank: int = 0, world_size: int = 1, attempt: int = 1,
          port: int = 0) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command_of([*arguments, "--trail"]), cwd=folder, text=True, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, env=environment_of(folder, rank, world_size, attempt, port))


def finish(processes: "list[subprocess.Popen[str]]") -> None:
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors


def wait_steps(folder: Path, iterations: int) -> None:
    end = time.monotonic() + 60
    while Trail(folder / "trail").last < iterations:
        assert time.monotonic() < end, "no progress"
        time.sleep(0.02)


@pytest.mark.parametrize("arguments", [
    ["lstm.py", "--samples", "200", "--epochs", "3"],
    ["reinforcement.py", "--samples", "800", "--epochs", "4"],
    ["speech.py", "--samples", "60", "--epochs", "3"],
], ids=lambda arguments: arguments[0])
def test_stops_on_notice_and_goes_on(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    finish([start(tmp_path / "whole", arguments)])
    whole = Trail(tmp_path / "whole" / "trail")
    (tmp_path / "parts").mkdir()
    first = start(tmp_path / "parts", arguments)
    wait_steps(tmp_path / "parts", 3)
    first.send_signal(signal.SIGTERM)
    finish([first])
    assert Trail(tmp_path / "parts" / "trail").last < whole.last, "it was stopped too late"
    finish([start(tmp_path / "parts", arguments, attempt=2)])
    parts = Trail(tmp_path / "parts" / "trail")
    assert parts.faults(whole.last) == []
    assert [step.samples for step in parts.chain] == [step.samples for step in whole.chain]
    assert parts.parameters == whole.parameters is not None


@pytest.mark.parametrize("options", [[], ["--interleave"]], ids=["overlapped", "stages"])
def test_two_processes_train_as_one(options: list[str], tmp_path: Path) -> None:
    """41 samples: of the last batch of an epoch, 1 is left, and one process has none."""
    arguments = ["lstm.py", "--samples", "41", "--batch", "8", "--epochs", "2", *options]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    finish([start(tmp_path / "one", arguments)])
    port = 21_000 + os.getpid() % 5000
    finish([start(tmp_path / "two", arguments, rank, 2, port=port) for rank in (0, 1)])
    one, two = (Trail(tmp_path / name / "trail") for name in ("one", "two"))
    assert two.faults(12) == []
    assert two.sample_faults(41) == []
    for step, other in zip(one.chain, two.chain):
        assert sorted(step.samples) == sorted(other.samples)
        assert step.loss == pytest.approx(other.loss, rel=1e-3)


# ---------------------------------------------------------------------------------------- real data


def make_cifar(folder: Path) -> None:
    draws = numpy.random.default_rng(1)
    for number in (1, 2):
        batch = {"data": draws.integers(0, 256, (40, 3072), dtype=numpy.uint8),
                 "labels": [index % 10 for index in range(40)], "batch_label": "made up"}
        with (folder / f"data_batch_{number}").open("wb") as file:
            pickle.dump(batch, file, protocol=2)


def make_images(folder: Path) -> None:
    draws = numpy.random.default_rng(1)
    for kind in ("cat", "dog"):
        (folder / "train" / kind).mkdir(parents=True)
        for number in range(16):
            pixels = draws.integers(0, 256, (40, 50, 3), dtype=numpy.uint8)
            Image.fromarray(pixels).save(folder / "train" / kind / f"{number}.png")


def make_text(folder: Path) -> None:
    words = "the cat sat on the mat , and the dog slept .\n" * 200
    (folder / "wiki.train.tokens").write_text(words)


def make_speech(folder: Path, suffix: str = ".wav") -> None:
    chapter = folder / "19" / "198"
    chapter.mkdir(parents=True)
    lines = []
    for number in range(16):
        name = f"19-198-{number:04}"
        lines.append(f"{name} HELLO WORLD")
        if suffix == ".flac":
            (chapter / (name + suffix)).write_bytes(b"fLaC")
            continue
        with wave.open(str(chapter / (name + suffix)), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes(numpy.zeros(16_000, "<i2").tobytes())
    (chapter / "19-198.trans.txt").write_text("\n".join(lines) + "\n")


def make_ratings(folder: Path) -> None:
    rows = [f"{user},{item},4.0,1" for user in range(20) for item in range(user % 7, 30, 3)]
    lines = ["userId,movieId,rating,timestamp", *rows]
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("make", "arguments"), [
    (make_cifar, ["image_classification.py", "--arch", "vgg11"]),
    (make_images, ["image_classification.py", "--arch", "resnet18"]),
    (make_text, ["transformer.py", "--arch", "bert"]),
    (make_text, ["lstm.py"]),
    (make_speech, ["speech.py"]),
    (make_ratings, ["recommendation.py"]),
], ids=["cifar", "imagenet", "bert", "lstm", "librispeech", "movielens"])
def test_reads_data(make: object, arguments: list[str], tmp_path: Path) -> None:
    make(tmp_path)  # type: ignore[operator]
    done = train(tmp_path, *arguments, "--data", str(tmp_path), "--batch", "8", "--max-iterations",
                 "2", "--print-every", "1")
    assert done.returncode == 0, done.stderr
    assert "iteration 2: loss" in done.stdout


def make_nothing(folder: Path) -> None:
    pass


def make_wrong_cifar(folder: Path) -> None:
    (folder / "data_batch_1").write_bytes(pickle.dumps({"data": print, "labels": []}))


@pytest.mark.parametrize(("make", "script", "message"), [
    (make_nothing, "image_classification.py", "neither data_batch_1 (CIFAR-10) nor"),
    (make_wrong_cifar, "image_classification.py", "does not belong into a CIFAR-10 batch"),
    (make_nothing, "transformer.py", "has no text; expected wiki.train.tokens"),
    (make_nothing, "speech.py", "has no *.trans.txt"),
    (lambda folder: make_speech(folder, ".flac"), "speech.py", "python3-soundfile"),
    (make_nothing, "recommendation.py", "expected ratings.csv, ratings.dat or u.data"),
    (make_nothing, "reinforcement.py", "makes its data by playing"),
], ids=["images", "pickle", "text", "speech", "flac", "ratings", "dqn"])
def test_says_what_is_missing(make: object, script: str, message: str, tmp_path: Path) -> None:
    make(tmp_path)  # type: ignore[operator]
    done = train(tmp_path, script, "--data", str(tmp_path))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------------------------------- profiling


def test_speaks_as_the_profiler_expects(tmp_path: Path) -> None:
    """Synergy's launcher appends its options, and the data folder may come last."""
    make_ratings(tmp_path)
    done = train(tmp_path, "recommendation.py", "--local_rank=0", "--nnodes", "1", "--node_rank",
                 "0", "-j", "1", "-b", "4", "--max-iterations", "15", "--job-name", "job-0",
                 str(tmp_path))
    assert done.returncode == 0, done.stderr
    seconds, iterations, epochs = (tmp_path / "PERF_job-0.txt").read_text().split()
    assert 0 < float(seconds) < 1
    assert (int(iterations), int(epochs)) == (15, 0)
