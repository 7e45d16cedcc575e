# SPDX-License-Identifier: Apache-2.0
"""What all workloads share: their options, the training loop and its record.

A family (image classification, speech, ...) describes its training as a `Task`; `run` trains it, on
one process or on many, on CPUs (gloo) or GPUs (NCCL), so that it may be stopped, resized and moved
at any iteration. docs/workloads.md describes options and files.
"""

from first import JOB  # before everything slow

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.clip_grad import clip_grad_norm_
from torch.utils.data import Dataset

from trainyard.train import AdaptiveBatch, Checkpoint, DataLoader, TrainyardError

WARM_UP_ITERATIONS = 10  # not part of the mean iteration time, as Synergy's profiler expects


class Stateful(Protocol):
    """What a task keeps besides model, optimizer and loader: a replay memory, for example."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@dataclass
class Task:
    """What one family trains.

    `loss(model, samples)` is the mean loss over `samples`, which `collate` has made of those of the
    data set and which lie on the device of the model.
    """

    dataset: Dataset[Any]
    model: nn.Module
    loss: Callable[[nn.Module, Any], Tensor]
    optimizer: Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]
    collate: Callable[[Any], Any] = torch.utils.data.default_collate
    loaded: Callable[[nn.Module, Any], Any] | None = None  # the rest of loading, in the trainer
    communicated: Callable[[], None] | None = None  # after each optimizer step
    scheduler: Callable[[torch.optim.Optimizer], Any] | None = None
    gradient_norm: float | None = None  # gradients are clipped to it
    drop_last: bool = False  # an epoch leaves out the samples that do not fill a batch
    extra: Stateful | None = None
    half: bool = False  # on GPUs its users train it in half precision, and with TF32


# -------------------------------------------------------------------------------------- the options


@dataclass(frozen=True)
class Defaults:
    """Of the options that differ between families, for `--size tiny` and `--size published`."""

    batch: tuple[int, int]
    samples: tuple[int, int]
    epochs: tuple[int, int]


def make_parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options of all workloads; a family adds its own."""
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("folder", nargs="?", type=Path, help="the same as --data")
    add("--data", type=Path, metavar="FOLDER", help="default: seeded synthetic data")
    add("--size", choices=("tiny", "published"), default="tiny", help="of model and samples")
    add("-b", "--batch", "--batch-size", dest="batch", type=positive, metavar="N",
        help="samples of an iteration, of all processes together")
    add("--batch-of", choices=("job", "process"), default="job",
        help="process: --batch is that of each process, as Synergy's profiler means it")
    add("-j", "--workers", type=non_negative, default=1, metavar="N",
        help="data-loading processes of each process; 0: it loads by itself (1). What Trainyard "
        "says takes its place")
    add("--epochs", type=positive, metavar="N")
    add("--max-iterations", type=positive, metavar="N", help="the training ends after so many")
    add("--samples", type=positive, metavar="N", help="of an epoch of synthetic data")
    add("--learning-rate", "--lr", type=float, metavar="RATE")
    add("--seed", type=int, default=1)
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--amp", choices=("off", "bf16", "fp16"), help="computes in half precision where that is "
        "safe (torch.autocast); fp16 with a gradient scaler, and on GPUs only (off)")
    add("--tf32", action=argparse.BooleanOptionalAction, help="multiplies float32 matrices and "
        "convolves in TF32, on GPUs that can (as torch does by itself: convolutions only)")
    add("--start-method", choices=("fork", "spawn", "forkserver"), help="of data-loading processes "
        "(fork; spawn where CUDA is in use)")
    add("--most-batch", type=positive, metavar="N", help="the batch grows from --batch up to N "
        "samples as far as that speeds the training up (AdaptiveBatch)")
    add("--most-part", type=positive, metavar="N", help="with --most-batch: samples that a process "
        "takes in one pass (--batch)")
    add("--choose-every", type=float, default=30.0, metavar="SECONDS",
        help="with --most-batch: between choices of the batch (30)")
    add("--interleave", action="store_true", help="goes through loading, computing and exchange in "
        "stages, in turn with the jobs of its group; loads nothing ahead")
    add("--checkpoints", type=Path, metavar="FOLDER",
        help="default: TRAINYARD_CHECKPOINT_DIR, or ./checkpoints")
    add("--checkpoint-every", type=positive, default=100, metavar="ITERATIONS")
    add("--job-name", metavar="NAME", help="writes PERF_NAME.txt into the working folder: mean "
        f"seconds of an iteration after {WARM_UP_ITERATIONS}, iterations, epochs")
    add("--trail", action="store_true", help="writes which process saw which sample in which "
        "iteration, with what loss, into the checkpoint folder")
    add("--losses", type=Path, metavar="FILE", help="the losses of the iterations, as JSON")
    add("--print-every", type=positive, default=10, metavar="ITERATIONS")
    # torchrun says these in the environment; the launchers before it as options.
    add("--local_rank", "--local-rank", type=int, help=argparse.SUPPRESS)
    add("--nnodes", type=int, help=argparse.SUPPRESS)
    add("--node_rank", "--node-rank", type=int, help=argparse.SUPPRESS)
    return parser


def parse(parser: argparse.ArgumentParser, defaults: Defaults,
          arguments: Sequence[str] | None = None) -> argparse.Namespace:
    options = parser.parse_args(arguments)
    options.data = options.data or options.folder
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: is not a folder")
    column = ("tiny", "published").index(options.size)
    for name in ("batch", "samples", "epochs"):
        if getattr(options, name) is None:
            setattr(options, name, getattr(defaults, name)[column])
    if options.batch_of == "process":
        options.batch *= JOB.world_size
    if options.most_batch is not None and options.interleave:
        parser.error("--most-batch does not go with --interleave: batches are done in passes")
    return options


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return number


def non_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more")
    return number


# ----------------------------------------------------------------------------------------- the data


def seeded(seed: int, *numbers: int) -> torch.Generator:
    """A generator that depends on nothing but the numbers, wherever the sample is made."""
    text = ",".join(str(number) for number in (seed, *numbers)).encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def to_device(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(each, device) for each in batch)
    return batch


# --------------------------------------------------------------------------------------- the record


class Trail:
    """Which sample this process has seen in which iteration, and the loss there.

    One file for each process: `trail/RANK-ATTEMPT.jsonl` in the checkpoint folder. Its first line
    says where the attempt begins. Iterations that are done after the last checkpoint of an attempt
    are done again by the next one; a reader of the trails leaves out the former ones
    (scripts/train_test/trail.py).
    """

    def __init__(self, folder: Path, done: int) -> None:
        folder = folder / "trail"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{JOB.rank}-{JOB.attempt}.jsonl").open("a")
        self._write({"attempt": JOB.attempt, "rank": JOB.rank, "world_size": JOB.world_size,
                     "done": done, "pid": os.getpid(), "time": time.time()})

    def step(self, iteration: int, epoch: int, samples: list[int], loss: float,
             stages: dict[str, tuple[float, float]]) -> None:
        self._write({"iteration": iteration, "epoch": epoch, "samples": samples, "loss": loss,
                     "time": round(time.time(), 4)} | ({"stages": stages} if stages else {}))

    def end(self, parameters: str) -> None:
        self._write({"finished": True, "parameters": parameters})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()


def digest_of(model: nn.Module) -> str:
    """SHA-256 of all parameters and buffers: equal for models that are equal bit by bit."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass
class Pace:
    """The mean time of an iteration, without the first ones."""

    iterations: int = 0
    _since: float = 0.0

    def step(self) -> None:
        self.iterations += 1
        if self.iterations == WARM_UP_ITERATIONS:
            self._since = time.perf_counter()

    def seconds(self) -> float:
        counted = self.iterations - WARM_UP_ITERATIONS
        return (time.perf_counter() - self._since) / counted if counted > 0 else math.nan


# ------------------------------------------------------------------------------------- the training


def choose_device(wish: str) -> torch.device:
    if wish == "cpu" or (wish == "auto" and not torch.cuda.is_available()):
        torch.set_num_threads(1)  # one process for each GPU that Trainyard grants
        return torch.device("cpu")
    torch.cuda.set_device(JOB.local_rank % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def use_tf32(wish: bool | None) -> None:
    """None: as torch does by itself."""
    if wish is not None:
        torch.set_float32_matmul_precision("high" if wish else "highest")
        torch.backends.cudnn.allow_tf32 = wish


class Precision:
    """In what numbers a training computes. Parameters and the optimizer's state are float32."""

    TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

    def __init__(self, wish: str, device: torch.device) -> None:
        if wish == "fp16" and device.type == "cpu":
            raise SystemExit("--amp fp16: the CPU does not compute in float16; expected --amp bf16")
        if wish == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
            raise SystemExit("--amp bf16: this GPU has no bfloat16; expected --amp fp16")
        self._device = device
        self._type = self.TYPES.get(wish)
        # Small gradients would be 0 in float16; bfloat16 has the exponents of float32.
        self.scaler: Any = make_scaler() if wish == "fp16" else None

    @classmethod
    def of_users(cls, task: Task, device: torch.device) -> str:
        """What is taken where nothing has been said."""
        if not task.half or device.type == "cpu":
            return "off"
        return "bf16" if torch.cuda.is_bf16_supported() else "fp16"

    def prepare(self, model: nn.Module) -> None:
        """torch 1.13 cannot train nn.Hardtanh and ReLU6 in bfloat16 on CPUs: float32 there."""
        if self._type is None or self._device.type != "cpu":
            return
        for module in model.modules():
            if isinstance(module, nn.Hardtanh):
                module.register_forward_pre_hook(lambda _, inputs: tuple(x.float() for x in inputs))

    def computing(self) -> AbstractContextManager[Any]:
        """Around the forward pass; the backward pass follows it by itself."""
        if self._type is None:
            return nullcontext()
        return torch.autocast(self._device.type, dtype=self._type)

    def backward(self, loss: Tensor) -> None:
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self, optimizer: torch.optim.Optimizer, clip: Callable[[], object] | None) -> None:
        """The optimizer's step, with gradients that `clip` has seen in their own size."""
        if self.scaler is not None and clip is not None:
            self.scaler.unscale_(optimizer)
        if clip is not None:
            clip()
        if self.scaler is None:
            optimizer.step()
        else:
            self.scaler.step(optimizer)
            self.scaler.update()


def make_scaler() -> Any:
    """torch.amp's; torch before 2.3 has it in torch.cuda.amp."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda")
    return torch.cuda.amp.GradScaler()


@dataclass
class Result:
    iterations: int = 0
    losses: list[float] = field(default_factory=list)  # of this process, in this attempt
    finished: bool = False


def run(options: argparse.Namespace, make_task: Callable[[argparse.Namespace], Task]) -> Result:
    """Trains until the end or until notice. Result: what this process has done in this attempt."""
    device = choose_device(options.device)
    if JOB.world_size > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        torch.manual_seed(options.seed)
        return Training(options, make_task(options), device).run()
    except TrainyardError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


class Training:
    def __init__(self, options: argparse.Namespace, task: Task, device: torch.device) -> None:
        self._options = options
        self._task = task
        self._device = device
        self._precision = Precision(options.amp or Precision.of_users(task, device), device)
        use_tf32(True if options.tf32 is None and task.half else options.tf32)
        self._bare = task.model.to(device)
        self._precision.prepare(self._bare)
        self._model: nn.Module = self._bare
        if dist.is_initialized() and not options.interleave:
            self._model = DistributedDataParallel(self._bare)
        self._optimizer = task.optimizer(list(self._model.parameters()))
        self._scheduler = task.scheduler(self._optimizer) if task.scheduler else None
        self._loader = DataLoader(
            task.dataset, batch_size=options.batch, job=JOB, workers=options.workers,
            seed=options.seed, collate_fn=task.collate, drop_last=task.drop_last,
            stage="load" if options.interleave and task.loaded is None else None,
            start_method=options.start_method)
        self._adaptive: AdaptiveBatch | None = None
        if options.most_batch is not None:
            if self._precision.scaler is not None:
                raise SystemExit("--most-batch does not go with --amp fp16; expected --amp bf16")
            self._adaptive = AdaptiveBatch(
                self._model, self._optimizer, self._loader, most_batch=options.most_batch,
                most_part=options.most_part or options.batch, interval=options.choose_every)
        extra = {"extra": task.extra, "scaler": self._precision.scaler, "adaptive": self._adaptive}
        self._checkpoint = Checkpoint(
            JOB, model=self._bare, optimizer=self._optimizer, scheduler=self._scheduler,
            loader=self._loader, folder=options.checkpoints,
            extra={name: part for name, part in extra.items() if part is not None} or None)
        self._stages: dict[str, tuple[float, float]] = {}  # begin and end, of this iteration
        self._result = Result()
        self._pace = Pace()

    def run(self) -> Result:
        done = self._checkpoint.restore()
        trail = Trail(self._checkpoint.folder, done) if self._options.trail else None
        for batch in self._batches():
            loss = self._step(batch)
            now = self._loader.batch
            self._result.iterations = now.iteration
            self._result.losses.append(loss)
            self._pace.step()
            JOB.loss(loss)
            if trail:
                trail.step(now.iteration, now.epoch, list(now.samples), loss, self._stages)
            if JOB.rank == 0 and now.iteration % self._options.print_every == 0:
                print(f"iteration {now.iteration}: loss {loss:.4f}", flush=True)
        if trail and self._result.finished:
            trail.end(digest_of(self._bare))
        self._write_files()
        return self._result

    def _batches(self) -> Iterator[Any]:
        """The batches that are left, until the end or notice."""
        epochs, most = self._options.epochs, self._options.max_iterations or None
        yield from self._checkpoint.steps(epochs, self._options.checkpoint_every, most)
        self._result.finished = self._checkpoint.finished

    def _step(self, batch: Any) -> float:
        if self._adaptive is not None:
            return self._adaptive_step(self._adaptive, batch)
        if self._task.loaded:
            with self._stage("load"):
                batch = self._task.loaded(self._bare, batch)
        with self._stage("forward"):
            self._optimizer.zero_grad()
            with self._precision.computing():
                loss = self._task.loss(self._model, to_device(batch, self._device))
            self._precision.backward(self._loader.scale_loss(loss))
        with self._stage("communication"):
            if dist.is_initialized() and self._options.interleave:
                self._exchange_gradients()
            self._precision.step(self._optimizer, self._clip if self._task.gradient_norm else None)
            if self._scheduler is not None:
                self._scheduler.step()
            if self._task.communicated:
                self._task.communicated()
        return float(loss.item())

    def _adaptive_step(self, adaptive: AdaptiveBatch, batch: Any) -> float:
        def loss_of(part: Any) -> Tensor:
            if self._task.loaded:
                part = self._task.loaded(self._bare, part)
            with self._precision.computing():
                return self._task.loss(self._model, to_device(part, self._device))

        loss = adaptive.backward(batch, loss_of)
        if self._task.gradient_norm:
            self._clip()
        adaptive.step()
        if self._scheduler is not None:
            self._scheduler.step()
        if self._task.communicated:
            self._task.communicated()
        return float(loss.item())

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """A stage in turn with other jobs, with --interleave; when it was is for the trail."""
        if not self._options.interleave:
            yield
            return
        with JOB.stage(name):
            begun = time.time()
            yield
            if self._device.type == "cuda":
                torch.cuda.synchronize()  # a stage has ended when the GPU has
            self._stages[name] = (begun, time.time())

    def _clip(self) -> None:
        assert self._task.gradient_norm is not None
        clip_grad_norm_(self._model.parameters(), self._task.gradient_norm)

    def _exchange_gradients(self) -> None:
        """The mean over the processes, in one message; unused parameters have no gradient."""
        gradients = [each.grad for each in self._bare.parameters() if each.grad is not None]
        together = torch.cat([each.flatten() for each in gradients])
        dist.all_reduce(together)  # type: ignore[no-untyped-call]
        together /= JOB.world_size
        means = torch.split(together, [each.numel() for each in gradients])
        for gradient, mean in zip(gradients, means):
            gradient.copy_(mean.view_as(gradient))

    def _write_files(self) -> None:
        if JOB.rank != 0:
            return
        if self._options.losses:
            self._options.losses.write_text(json.dumps(self._result.losses))
        if self._options.job_name:
            Path(f"PERF_{self._options.job_name}.txt").write_text(
                f"{self._pace.seconds()}\n{self._result.iterations}\n{self._loader.epoch}\n")
