#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Transformers on text: one of the form of BERT, which fills in masked words, and one of the form
of GPT-2, which continues the text.

Data: a folder with WikiText (`wiki.train.tokens`), or with texts (`*.txt`). Words are those between
blanks; there is no subword vocabulary. Published form: 12 layers of width 768 with 12 heads,
windows of 512 (BERT) and 1024 words (GPT-2), AdamW with rate 5e-5. Tiny: 2 layers of width 64,
windows of 32.
"""

from common import Defaults, Task, make_parser, parse, run

import argparse
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import text

DEFAULTS = Defaults(batch=(16, 32), samples=(512, 100_000), epochs=(3, 3))
MASKED_SHARE = 0.15
NOT_ASKED = -100  # as a target: cross_entropy leaves it out


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    window: int
    vocabulary: int
    dropout: float


SHAPES = {
    ("bert", "tiny"): Shape(2, 64, 4, 32, 64, 0.0),
    ("gpt2", "tiny"): Shape(2, 64, 4, 32, 64, 0.0),
    ("bert", "published"): Shape(12, 768, 12, 512, 30_522, 0.1),
    ("gpt2", "published"): Shape(12, 768, 12, 1024, 50_257, 0.1),
}


class Transformer(nn.Module):
    """`causal`: each word sees those before it only, and layers are normalised first (GPT-2)."""

    def __init__(self, shape: Shape, causal: bool) -> None:
        super().__init__()
        self._causal = causal
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.window, shape.width)
        layer = nn.TransformerEncoderLayer(
            shape.width, shape.heads, 4 * shape.width, shape.dropout, activation="gelu",
            batch_first=True, norm_first=causal)
        self.layers = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
        self.before = nn.Identity() if causal else nn.LayerNorm(shape.width)
        self.after = nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=not causal)
        self.head.weight = self.words.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        places = torch.arange(length, device=tokens.device)
        hidden = self.dropout(self.before(self.words(tokens) + self.places(places)))
        mask = None
        if self._causal:
            ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
            mask = torch.triu(ones, diagonal=1)
        return self.head(self.after(self.layers(hidden, mask)))


class Masked(Dataset[tuple[Tensor, Tensor]]):
    """15 % of the words are asked for: 80 % of these masked, 10 % replaced, 10 % as they are.

    Drawn anew in each epoch, from the generators that the loader has seeded for the sample.
    """

    def __init__(self, windows: Dataset[Tensor], vocabulary: int) -> None:
        self._windows, self._vocabulary = windows, vocabulary

    def __len__(self) -> int:
        return len(self._windows)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        words = self._windows[index]
        asked = torch.rand(words.shape) < MASKED_SHARE
        asked[torch.randint(len(words), (1,))] = True  # never none
        kind = torch.rand(words.shape)
        others = torch.randint(text.FIRST_WORD, self._vocabulary, words.shape)
        shown = torch.where(asked & (kind < 0.9), others, words)
        shown = torch.where(asked & (kind < 0.8), torch.full_like(words, text.MASK), shown)
        return shown, torch.where(asked, words, torch.full_like(words, NOT_ASKED))


class Continued(Dataset[tuple[Tensor, Tensor]]):
    """Each word's target is the next one."""

    def __init__(self, windows: Dataset[Tensor]) -> None:
        self._windows = windows

    def __len__(self) -> int:
        return len(self._windows)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        words = self._windows[index]
        return words[:-1], words[1:]


def loss(model: nn.Module, batch: Any) -> Tensor:
    words, targets = batch
    scores = model(words)
    return nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(),
                                       ignore_index=NOT_ASKED)


def trains_in_half(arch: str, size: str) -> bool:
    """GPT-2 is trained so by nearly everybody; BERT was published in float32."""
    return arch == "gpt2" and size == "published"


def make_task(options: argparse.Namespace) -> Task:
    shape = SHAPES[options.arch, options.size]
    windows = text.make_dataset(options.data, options.samples, shape.window, shape.vocabulary,
                                options.seed)
    causal = options.arch == "gpt2"
    dataset: Dataset[Any] = Continued(windows) if causal else Masked(windows, shape.vocabulary)
    rate = options.learning_rate or (5e-5 if options.size == "published" else 2e-3)
    return Task(
        dataset=dataset, model=Transformer(shape, causal), loss=loss, gradient_norm=1.0,
        half=trains_in_half(options.arch, options.size),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=rate))


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--arch", "-a", default="bert", choices=("bert", "gpt2"))
    run(parse(parser, DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
