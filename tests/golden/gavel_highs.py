#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gavel_highs.py INSTANCES OPTIMA: solves allocation problems of Gavel (OSDI'20) by SciPy's HiGHS.

Written from the description of the published policies, apart from the solvers that it checks. Each line of
INSTANCES is a JSON object:
  instance, policies (names), gpus (by type), prices (by type), fast_type (for policies that know no types),
  jobs: kind, gpus, weight, rates (by type), work_left, age, isolated_time, time_left (null: no deadline)
  pairs: first, second (kinds), first_rates, second_rates
Each line of OPTIMA: instance, optima (a list of numbers by name of the policy). The list has one number,
except for
  ..._SLOs: the sum, and 1 if the deadlines can all be met, else 0;
  ..._water_filling...: the least level, and by job the rate over the mean rate.
"""
import json
import sys

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.sparse import coo_matrix, csr_matrix, diags, hstack, vstack

# The strictest that HiGHS has; rows are scaled so that they count in shares of time.
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
INFEASIBLE = 2


class Problem:
    """The shares x of units (a job alone, or two) on types, and what holds for them in every policy."""

    def __init__(self, gpus, jobs, pairs=(), rates=None):
        self.gpus = np.array(gpus, dtype=float)
        self.jobs = jobs
        # Of jobs alone, by job and type.
        self.alone = np.array([job["rates"] for job in jobs] if rates is None else rates, dtype=float)
        self.sizes = np.array([job["gpus"] for job in jobs], dtype=float)
        self.weights = np.array([job["weight"] for job in jobs], dtype=float)
        self.work = np.array([job["work_left"] for job in jobs], dtype=float)
        units = [((i,), (self.alone[i],)) for i in range(len(jobs))] + list(self.paired(pairs))
        self.set_columns([(members, rates_of, j) for members, rates_of in units for j in range(len(gpus))
                          if any(rates[j] > 0 for rates in rates_of)])

    def paired(self, pairs):
        """Units of two jobs, with the rates of both."""
        known = {(pair["first"], pair["second"]): pair for pair in pairs}
        for i, job in enumerate(self.jobs):
            for k in range(i + 1, len(self.jobs)):
                other = self.jobs[k]
                if pair := known.get((job["kind"], other["kind"])):
                    yield (i, k), (pair["first_rates"], pair["second_rates"])
                elif pair := known.get((other["kind"], job["kind"])):
                    yield (i, k), (pair["second_rates"], pair["first_rates"])

    def set_columns(self, columns):
        """`columns`: (jobs, their rates by type, type)."""
        entries = [(i, c, rates[j]) for c, (members, rates_of, j) in enumerate(columns)
                   for i, rates in zip(members, rates_of)]
        n, width = len(self.jobs), len(columns)
        row, column, value = zip(*entries)
        # What each job gets, and the limits: a job has at most all its time, a type at most its GPUs.
        self.rates = csr_matrix((value, (row, column)), shape=(n, width), dtype=float)
        time = coo_matrix((np.ones(len(entries)), (row, column)), shape=(n, width))
        used = coo_matrix(([self.sizes[members[0]] for members, _, _ in columns],
                           ([j for _, _, j in columns], range(width))),
                          shape=(len(self.gpus), width))
        self.limits = vstack([time, used]).tocsr()
        self.most = np.concatenate([np.ones(n), self.gpus])

    def mean_rates(self):
        return self.alone @ self.gpus / self.gpus.sum()

    def isolated_rates(self):
        """All divide the cluster equally; nobody has more than all of its time."""
        share = self.gpus[None, :] / (len(self.jobs) * self.sizes[:, None])
        share /= np.maximum(1, share.sum(axis=1))[:, None]
        return (self.alone * share).sum(axis=1)

    def largest_rates(self):
        """The most that a unit of the job has on any type, for scaling."""
        largest = self.rates.max(axis=1).toarray().ravel()
        return np.where(largest > 0, largest, 1)

    def levels_per_rate(self):
        return self.sizes / (self.weights * self.mean_rates())


def solve(gains, rows, limits):
    """Maximises gains @ x over x >= 0 with rows @ x <= limits. None: no x is within the limits."""
    found = linprog(-gains, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs", options=EXACT)
    if found.status == INFEASIBLE:
        return None
    if found.status != 0:
        raise RuntimeError(found.message)
    return found


def raise_least(problem, factors, floors=None):
    """The largest t with factor x rate >= t for every job without a floor (NaN), and >= its floor for the
    others; None: the floors are too high. Also by job what t would gain if the job needed less: the more, the
    more it holds t down."""
    n = len(problem.jobs)
    floors = np.full(n, np.nan) if floors is None else floors
    open_jobs = np.isnan(floors)
    reach = factors * problem.largest_rates()  # what each would have with all its time on its best type
    scale = reach[open_jobs].min()
    # Row i: rate / largest rate >= t / scale x need.
    need = np.where(open_jobs, scale / reach, 0)
    floor = np.where(open_jobs, 0, floors / reach)
    per_largest = diags(1 / problem.largest_rates()) @ problem.rates
    rows = vstack([hstack([-per_largest, csr_matrix(need[:, None])]),
                   hstack([problem.limits, csr_matrix((len(problem.most), 1))])]).tocsr()
    gains = np.zeros(rows.shape[1])
    gains[-1] = 1
    found = solve(gains, rows, np.concatenate([-floor, problem.most]))
    if found is None:
        return None
    return found.x[-1] * scale, -found.ineqlin.marginals[:n] * need


def max_min(problem):
    return [raise_least(problem, problem.levels_per_rate())[0]]


def water_filling(problem):
    """Raise the least level; who holds it down (its need has a price) keeps it, the others rise on. As soon
    as one job has a price, it is at this level in every optimum; the prices sum up to 1."""
    per_rate = problem.levels_per_rate()
    levels = np.full(len(problem.jobs), np.nan)
    lowest = 0.0
    while np.isnan(levels).any():
        # Levels that were reached are given up by a trifle, as the next program rounds in its own way.
        level, prices = next(filter(None, (raise_least(problem, per_rate, levels * (1 - trifle))
                                           for trifle in (1e-12, 1e-10, 1e-9, 1e-8))))
        lowest = max(lowest, level)
        held = np.isnan(levels) & (prices > 1e-6)
        if not held.any():
            raise RuntimeError(f"nobody holds the level {level} down")
        levels[held] = lowest
    return [levels.min(), *(levels * problem.weights / problem.sizes)]


def least_makespan(problem):
    """The work of all is done at T if every rate is at least work / T."""
    return [1 / raise_least(problem, 1 / problem.work)[0]]


def finish_times(problem, isolated, divide_by):
    """The least rho for which rates of work / (rho x due - age) are within reach, which is so for all larger
    ones. `isolated`: rates that jobs compare with; `divide_by`: by job, what the allocation's rates are divided
    by."""
    age = np.array([job["age"] for job in problem.jobs], dtype=float)
    past = np.array([job["isolated_time"] for job in problem.jobs], dtype=float)
    due = past + problem.work / isolated

    def excess(rho):
        factors = (rho * due - age) / (problem.work * divide_by)
        return -1.0 if (factors <= 0).any() else raise_least(problem, factors)[0] - 1

    # The isolated share is one way; nobody's rho is smaller than if it ended at once.
    high = ((age + problem.work * divide_by / problem.isolated_rates()) / due).max()
    low = (age / due).max()
    return [brentq(excess, low, high * (1 + 1e-6), xtol=1e-13 * high, rtol=1e-13)]


def most_throughput(problem, prices, deadlines=False):
    """The largest sum of rates over prices. Where not all deadlines can be met, none counts."""
    gains = (problem.alone / prices)[problem.alone > 0]  # columns are jobs alone, each with its types
    scale = gains.max()
    if deadlines:
        left = np.array([np.inf if job["time_left"] is None else job["time_left"] for job in problem.jobs])
        largest = problem.largest_rates()
        per_largest = diags(1 / largest) @ problem.rates
        found = solve(gains / scale, vstack([problem.limits, -per_largest]).tocsr(),
                      np.concatenate([problem.most, -problem.work / left / largest]))
        if found is None:
            return [*most_throughput(problem, prices), 0.0]
        return [-found.fun * scale, 1.0]
    return [-solve(gains / scale, problem.limits, problem.most).fun * scale]


def optima_of(instance):
    gpus, jobs, pairs = instance["gpus"], instance["jobs"], instance["pairs"]
    prices = np.array(instance["prices"], dtype=float)
    types, fast = len(gpus), instance["fast_type"]
    perf = Problem(gpus, jobs)
    ones = Problem(gpus, jobs, rates=np.ones((len(jobs), types)))
    blind = packed = None
    if "min_total_duration" in instance["policies"]:
        blind = Problem(gpus, jobs, rates=[[job["rates"][fast]] * types for job in jobs])
    if pairs:
        packed = Problem(gpus, jobs, pairs)
    alike = np.ones(len(jobs))
    solvers = {
        "max_min_fairness": lambda: max_min(ones),
        "max_min_fairness_perf": lambda: max_min(perf),
        "max_min_fairness_packed": lambda: max_min(packed),
        "max_min_fairness_water_filling": lambda: water_filling(ones),
        "max_min_fairness_water_filling_perf": lambda: water_filling(perf),
        "max_min_fairness_water_filling_packed": lambda: water_filling(packed),
        "finish_time_fairness": lambda: finish_times(blind, blind.isolated_rates(), alike),
        "finish_time_fairness_perf": lambda: finish_times(perf, perf.isolated_rates(), alike),
        "finish_time_fairness_packed":
            lambda: finish_times(packed, packed.isolated_rates(), packed.weights),
        "min_total_duration": lambda: least_makespan(blind),
        "min_total_duration_perf": lambda: least_makespan(perf),
        "min_total_duration_packed": lambda: least_makespan(packed),
        "max_sum_throughput_perf": lambda: most_throughput(perf, np.ones(types)),
        "max_sum_throughput_normalized_by_cost_perf": lambda: most_throughput(perf, prices),
        "max_sum_throughput_normalized_by_cost_perf_SLOs":
            lambda: most_throughput(perf, prices, deadlines=True)}
    return {name: solvers[name]() for name in instance["policies"]}


def main():
    with open(sys.argv[1], encoding="ascii") as instances, open(sys.argv[2], "w", encoding="ascii") as out:
        for line in instances:
            instance = json.loads(line)
            try:
                optima = optima_of(instance)
            except (RuntimeError, StopIteration, ValueError) as error:
                sys.exit(f"gavel_highs: instance {instance['instance']}: {error}")
            print(json.dumps({"instance": instance["instance"], "optima": optima}), file=out)


if __name__ == "__main__":
    main()
