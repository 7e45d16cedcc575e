#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A language model with LSTM layers, which continues the text word by word.

Data: as transformer.py. Published form: 2 layers of width 650 with dropout 0.5, windows of 35 words
(Zaremba's medium model), SGD with rate 1 and gradients clipped to 5. Tiny: 1 layer of width 64.
"""

from common import Defaults, Task, make_parser, parse, run

import argparse
from typing import Any

import torch
from torch import Tensor, nn

import text
from transformer import Continued, loss

DEFAULTS = Defaults(batch=(16, 20), samples=(512, 60_000), epochs=(3, 39))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.LSTM(width, width, layers, batch_first=True,
                              dropout=dropout if layers > 1 else 0.0)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.layers(self.dropout(self.words(tokens)))
        return self.head(self.dropout(hidden))


def make_task(options: argparse.Namespace) -> Task:
    published = options.size == "published"
    vocabulary, window = (33_278, 35) if published else (64, 32)
    model = LanguageModel(vocabulary, 650, 2, 0.5) if published \
        else LanguageModel(vocabulary, 64, 1, 0.0)
    windows = text.make_dataset(options.data, options.samples, window + 1, vocabulary, options.seed)
    rate = options.learning_rate or (1.0 if published else 5e-3)

    def optimizer(parameters: Any) -> torch.optim.Optimizer:
        kind = torch.optim.SGD if published else torch.optim.Adam
        return kind(parameters, lr=rate)

    return Task(dataset=Continued(windows), model=model, loss=loss, optimizer=optimizer,
                gradient_norm=5.0)


def main(arguments: list[str] | None = None) -> None:
    run(parse(make_parser(__doc__), DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
