# SPDX-License-Identifier: Apache-2.0
"""Texts for the language models: WikiText's files, or made-up ones, cut into windows of tokens."""

import collections
from pathlib import Path

import numpy
import torch
from torch import Tensor
from torch.utils.data import Dataset

from common import seeded

UNKNOWN, MASK, FIRST_WORD = 0, 1, 2  # tokens


class Windows(Dataset[Tensor]):
    """Windows of `length` tokens one behind the other; the last one's rest is left out."""

    def __init__(self, tokens: Tensor, length: int) -> None:
        self._windows = tokens[: len(tokens) // length * length].view(-1, length)

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, index: int) -> Tensor:
        return self._windows[index].long()


class Synthetic(Dataset[Tensor]):
    """Each window counts on from a word of its own in steps of its own.

    One word in ten is another.
    """

    STEPS = 4

    def __init__(self, samples: int, length: int, vocabulary: int, seed: int) -> None:
        self._samples, self._length, self._seed = samples, length, seed
        self._words = vocabulary - FIRST_WORD

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> Tensor:
        draws = seeded(self._seed, index)
        start = int(torch.randint(self._words, (1,), generator=draws))
        step = 1 + int(torch.randint(self.STEPS, (1,), generator=draws))
        words = (start + step * torch.arange(self._length)) % self._words
        others = torch.randint(self._words, (self._length,), generator=draws)
        noisy = torch.rand(self._length, generator=draws) < 0.1
        return torch.where(noisy, others, words) + FIRST_WORD


def read_wikitext(folder: Path, vocabulary: int) -> Tensor:
    """The tokens of its training texts: words between blanks, the most frequent ones by rank.

    The files are wiki.train.tokens or wiki.train.raw of WikiText, or else all *.txt.
    """
    files = [folder / name for name in ("wiki.train.tokens", "wiki.train.raw")]
    files = [file for file in files if file.exists()][:1] or sorted(folder.glob("*.txt"))
    if not files:
        raise SystemExit(f"{folder}: has no text; expected "
                         "wiki.train.tokens, wiki.train.raw or *.txt")
    words: list[str] = []
    for file in files:
        with file.open(encoding="utf-8") as lines:
            words += (word for line in lines for word in [*line.split(), "<eos>"])
    counts = collections.Counter(words)
    counts.pop("<unk>", None)
    kept = sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - FIRST_WORD]
    numbers = {word: number for number, word in enumerate(kept, FIRST_WORD)}
    tokens = numpy.fromiter((numbers.get(word, UNKNOWN) for word in words), numpy.int32, len(words))
    return torch.from_numpy(tokens)


def make_dataset(data: Path | None, samples: int, length: int, vocabulary: int,
                 seed: int) -> Dataset[Tensor]:
    if data is None:
        return Synthetic(samples, length, vocabulary, seed)
    tokens = read_wikitext(data, vocabulary)
    if len(tokens) < length:
        raise SystemExit(f"{data}: has {len(tokens)} words; expected {length} at least")
    return Windows(tokens, length)
