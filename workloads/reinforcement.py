#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning with a deep Q network (DQN): a cart balances a pole.

Loading is playing: in each iteration the network plays on by some steps, which go into the replay
memory, and the batch is drawn from there. All processes play the same game, so that each has the
whole memory and the job may be resized; each learns from its part of the batch. An "epoch" is a
number of draws from the memory. There is no data to read.

Published form: two layers of width 512, 50 steps of play in an iteration, a target network renewed
each 10,000 iterations, as in Muri's program (which plays Atari). Tiny: width 64, 4 steps, each 20.
"""

from common import Defaults, Task, make_parser, parse, run, seeded

import argparse
import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

DEFAULTS = Defaults(batch=(32, 128), samples=(3200, 1_280_000), epochs=(8, 10))
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
WIDEST, STEEPEST, LONGEST = 2.4, 12 * math.pi / 180, 200  # a game ends beyond


class CartPole:
    """A pole on a cart that is pushed left or right: Barto, Sutton and Anderson, 1983."""

    def __init__(self, draws: torch.Generator) -> None:
        self._draws = draws
        self.reset()

    def reset(self) -> None:
        self.state = (torch.rand(4, generator=self._draws) * 0.1 - 0.05).tolist()
        self.steps = 0

    def step(self, action: int) -> bool:
        """Whether the pole has fallen."""
        place, speed, angle, turn = self.state
        mass = CART + POLE
        sine, cosine = math.sin(angle), math.cos(angle)
        pushed = ((FORCE if action else -FORCE) + POLE * HALF_LENGTH * turn * turn * sine) / mass
        turning = (GRAVITY * sine - cosine * pushed) / (
            HALF_LENGTH * (4 / 3 - POLE * cosine * cosine / mass))
        moving = pushed - POLE * HALF_LENGTH * turning * cosine / mass
        self.state = [place + SECONDS * speed, speed + SECONDS * moving,
                      angle + SECONDS * turn, turn + SECONDS * turning]
        self.steps += 1
        return abs(self.state[0]) > WIDEST or abs(self.state[2]) > STEEPEST


@dataclass(frozen=True)
class Rules:
    width: int
    play: int  # steps in an iteration
    memory: int  # steps
    renewal: int  # iterations
    discount: float = 0.8
    exploring: float = 0.1


class Player:
    """The game, the replay memory and the target network; all of it is in the checkpoint."""

    def __init__(self, rules: Rules, model: nn.Module, seed: int) -> None:
        self._rules = rules
        self._draws = seeded(seed)
        self._game = CartPole(self._draws)
        self._memory = torch.zeros(rules.memory, 10)  # state, next state, action, fallen
        self._written = 0
        self.target = copy.deepcopy(model)
        self._iterations = 0

    @torch.no_grad()
    def play(self, model: nn.Module) -> None:
        device = next(model.parameters()).device
        for _ in range(self._rules.play if self._written else self._rules.play + 64):
            state = list(self._game.state)
            if float(torch.rand(1, generator=self._draws)) < self._rules.exploring:
                action = int(torch.randint(2, (1,), generator=self._draws))
            else:
                action = int(model(torch.tensor(state, device=device)).argmax())
            fallen = self._game.step(action)
            row = torch.tensor([*state, *self._game.state, float(action), float(fallen)])
            self._memory[self._written % len(self._memory)] = row
            self._written += 1
            if fallen or self._game.steps == LONGEST:
                self._game.reset()

    def draw(self, shares: Tensor) -> Tensor:
        """The rows at these shares of the memory."""
        held = min(self._written, len(self._memory))
        return self._memory[(shares * held).long().clamp(max=held - 1)]

    def renew(self, model: nn.Module) -> None:
        self._iterations += 1
        if self._iterations % self._rules.renewal == 0:
            self.target.load_state_dict(model.state_dict())

    def state_dict(self) -> dict[str, Any]:
        return {"draws": self._draws.get_state(), "state": self._game.state,
                "steps": self._game.steps, "memory": self._memory, "written": self._written,
                "target": self.target.state_dict(), "iterations": self._iterations}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._draws.set_state(state["draws"].cpu())
        self._game.state, self._game.steps = list(state["state"]), state["steps"]
        self._memory, self._written = state["memory"].cpu().clone(), state["written"]
        self.target.load_state_dict(state["target"])
        self._iterations = state["iterations"]


class Draws(Dataset[float]):
    """Places in the replay memory, from 0 to 1; the loader has seeded them for the epoch."""

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> float:
        return float(torch.rand(1))


def make_task(options: argparse.Namespace) -> Task:
    if options.data:
        raise SystemExit("--data: this workload makes its data by playing; expected no folder")
    rules = Rules(512, 50, 100_000, 10_000, 0.99) if options.size == "published" \
        else Rules(64, 4, 2000, 20)
    model = nn.Sequential(nn.Linear(4, rules.width), nn.ReLU(), nn.Linear(rules.width, rules.width),
                          nn.ReLU(), nn.Linear(rules.width, 2))
    player = Player(rules, model, options.seed)

    def loaded(bare: nn.Module, shares: Tensor) -> Tensor:
        player.play(bare)
        return player.draw(shares)

    def loss(trained: nn.Module, rows: Any) -> Tensor:
        states, following, actions, fallen = rows[:, :4], rows[:, 4:8], rows[:, 8], rows[:, 9]
        with torch.no_grad():
            player.target.to(rows.device)
            best = player.target(following).max(1).values
            aims = 1 + rules.discount * best * (1 - fallen)
        values = trained(states).gather(1, actions.long().unsqueeze(1)).squeeze(1)
        return nn.functional.smooth_l1_loss(values, aims)

    rate = options.learning_rate or (2.5e-4 if options.size == "published" else 1e-2)
    return Task(dataset=Draws(options.samples), model=model, loss=loss, loaded=loaded,
                communicated=lambda: player.renew(model), extra=player,
                optimizer=lambda parameters: torch.optim.RMSprop(parameters, lr=rate))


def main(arguments: list[str] | None = None) -> None:
    run(parse(make_parser(__doc__), DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
