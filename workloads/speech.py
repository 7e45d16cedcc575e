#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Speech recognition with connectionist temporal classification (CTC), in the form of DeepSpeech 2.

Data: a folder in the layout of LibriSpeech: `SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt`, beside it
`SPEAKER-CHAPTER-NUMBER.wav` or `.flac` (16 kHz). WAV is read by Python itself; FLAC needs the
package `soundfile`. Published form: 2 convolutions and 5 bidirectional GRU layers of width 800, SGD
with rate 3e-4. Tiny: 1 GRU layer of width 64 on made-up utterances, in which each letter is a tone.
"""

from common import Defaults, Task, make_parser, parse, run, seeded

import argparse
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

DEFAULTS = Defaults(batch=(8, 32), samples=(256, 28_539), epochs=(4, 15))
ALPHABET = "_ 'ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # the first one is CTC's blank
RATE = 16_000  # samples per second
WINDOW, HOP = 320, 160  # samples: 20 ms, each 10 ms


# ----------------------------------------------------------------------------------------- the data


class Synthetic(Dataset[tuple[Tensor, Tensor]]):
    """Utterances of 3 to 6 letters; each letter is a tone of 0.1 s, with noise and pauses."""

    LETTERS = 8
    SECONDS = 0.1

    def __init__(self, samples: int, seed: int) -> None:
        self._samples, self._seed = samples, seed

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        draws = seeded(self._seed, index)
        count = 3 + int(torch.randint(4, (1,), generator=draws))
        letters = 3 + torch.randint(self.LETTERS, (count,), generator=draws)
        times = torch.arange(int(self.SECONDS * RATE)) / RATE
        tones = [torch.sin(2 * torch.pi * (300 + 500 * (letter - 3)) * times) for letter in letters]
        pause = torch.zeros(len(times) // 2)
        sound = torch.cat([part for tone in tones for part in (tone, pause)])
        sound = sound + 0.1 * torch.randn(len(sound), generator=draws)
        return spectrogram(sound), letters


class LibriSpeech(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, folder: Path) -> None:
        self._utterances = list(read_transcripts(folder))
        if not self._utterances:
            raise SystemExit(f"{folder}: has no *.trans.txt with WAV or FLAC files beside; "
                             "expected the layout of LibriSpeech")
        if any(path.suffix == ".flac" for path, _ in self._utterances):
            soundfile_or_exit(self._utterances[0][0])

    def __len__(self) -> int:
        return len(self._utterances)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        path, text = self._utterances[index]
        letters = [ALPHABET.index(letter) for letter in text if letter in ALPHABET[1:]]
        return spectrogram(read_sound(path)), torch.tensor(letters)


def read_transcripts(folder: Path) -> list[tuple[Path, str]]:
    found = []
    for transcript in sorted(folder.rglob("*.trans.txt")):
        for line in transcript.read_text(encoding="utf-8").splitlines():
            name, _, text = line.partition(" ")
            for suffix in (".wav", ".flac"):
                if (path := transcript.parent / (name + suffix)).exists():
                    found.append((path, text.upper()))
                    break
    return found


def soundfile_or_exit(path: Path) -> Any:
    try:
        import soundfile
    except ImportError as error:
        raise SystemExit(
            f"{path}: FLAC files need the Python package 'soundfile' (Debian: python3-soundfile), "
            "which is not installed; install it, or put a .wav file with the same name beside"
        ) from error
    return soundfile


def read_sound(path: Path) -> Tensor:
    if path.suffix == ".flac":
        sound, rate = soundfile_or_exit(path).read(str(path), dtype="float32", always_2d=True)
        sound = sound[:, 0]
    else:
        with wave.open(str(path), "rb") as file:
            if file.getsampwidth() != 2:
                raise SystemExit(f"{path}: has {8 * file.getsampwidth()} bits; expected 16")
            rate = file.getframerate()
            words = numpy.frombuffer(file.readframes(file.getnframes()), "<i2")
            sound = words[:: file.getnchannels()].astype(numpy.float32) / 32768
    if rate != RATE:
        raise SystemExit(f"{path}: has {rate} samples per second; expected {RATE}")
    return torch.from_numpy(sound)


def spectrogram(sound: Tensor) -> Tensor:
    """Log power, a row for each 10 ms, a column for each of 161 frequencies.

    Its mean is 0 and its deviation 1.
    """
    power = torch.stft(sound, WINDOW, HOP, window=torch.hann_window(WINDOW),
                       return_complex=True).abs().square()
    rows = torch.log1p(power).T
    return (rows - rows.mean()) / (rows.std() + 1e-6)


def collate(samples: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Utterances and letters, filled up to the longest, with their lengths."""
    sounds, letters = zip(*samples)
    pad = nn.utils.rnn.pad_sequence
    return (pad(list(sounds), batch_first=True), torch.tensor([len(each) for each in sounds]),
            pad(list(letters), batch_first=True), torch.tensor([len(each) for each in letters]))


# ---------------------------------------------------------------------------------------- the model


class Recogniser(nn.Module):
    """Scores of all letters for every second row of the spectrogram."""

    def __init__(self, width: int, layers: int, channels: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, channels, (11, 41), stride=(2, 2), padding=(5, 20)),
            nn.BatchNorm2d(channels), nn.Hardtanh(0, 20),
            nn.Conv2d(channels, channels, (11, 21), stride=(1, 2), padding=(5, 10)),
            nn.BatchNorm2d(channels), nn.Hardtanh(0, 20))
        self.layers = nn.GRU(channels * 41, width, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, len(ALPHABET))

    def forward(self, sounds: Tensor) -> Tensor:
        hidden = self.convolutions(sounds.unsqueeze(1))
        hidden, _ = self.layers(hidden.permute(0, 2, 1, 3).flatten(2))
        return self.head(hidden)


def loss(model: nn.Module, batch: Any) -> Tensor:
    sounds, lengths, letters, counts = batch
    scores = model(sounds).log_softmax(-1).transpose(0, 1)
    return nn.functional.ctc_loss(scores, letters, (lengths + 1) // 2, counts, zero_infinity=True)


def make_task(options: argparse.Namespace) -> Task:
    published = options.size == "published"
    dataset: Dataset[Any] = LibriSpeech(options.data) if options.data \
        else Synthetic(options.samples, options.seed)
    rate = options.learning_rate or (3e-4 if published else 3e-3)

    def optimizer(parameters: Any) -> torch.optim.Optimizer:
        if published:
            return torch.optim.SGD(parameters, lr=rate, momentum=0.9, nesterov=True)
        return torch.optim.Adam(parameters, lr=rate)

    model = Recogniser(800, 5, 32) if published else Recogniser(48, 1, 4)
    return Task(dataset=dataset, model=model, loss=loss, optimizer=optimizer, collate=collate,
                gradient_norm=400.0)


def main(arguments: list[str] | None = None) -> None:
    run(parse(make_parser(__doc__), DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
