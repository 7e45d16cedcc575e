// SPDX-License-Identifier: Apache-2.0
#include "solver/minimise.h"

#include <nlopt.h>

#include <memory>

#include "base/check.h"

namespace trainyard::solver {
namespace {

// What NLopt is given: the function, and the best point that it has been asked for so far.
struct Search {
  const SmoothFunction& function;
  Minimum best;
  std::vector<double> slopes;  // where NLopt wants none
};

double Evaluate(unsigned count, const double* at, double* slopes, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span<const double> point(at, count);
  const double value = search.function(point, slopes != nullptr ? std::span<double>(slopes, count)
                                                                : std::span<double>(search.slopes));
  if (value < search.best.value) {
    search.best.value = value;
    search.best.at.assign(point.begin(), point.end());
  }
  return value;
}

}  // namespace

Minimum Minimise(const SmoothFunction& function, std::span<const Bounds> bounds,
                 std::vector<double> start, const MinimiseOptions& options) {
  CHECK(bounds.size() == start.size());
  std::vector<double> lower;
  std::vector<double> upper;
  for (const Bounds& bound : bounds) {
    lower.push_back(bound.lower);
    upper.push_back(bound.upper);
  }
  const auto count = static_cast<unsigned>(start.size());
  const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> opt(
      nlopt_create(NLOPT_LD_SLSQP, count), &nlopt_destroy);
  Search search{.function = function,
                .best = {.at = start, .value = 0},
                .slopes = std::vector<double>(start.size())};
  search.best.value = function(start, search.slopes);
  CHECK(nlopt_set_lower_bounds(opt.get(), lower.data()) > 0);
  CHECK(nlopt_set_upper_bounds(opt.get(), upper.data()) > 0);
  CHECK(nlopt_set_min_objective(opt.get(), Evaluate, &search) > 0);
  CHECK(nlopt_set_ftol_rel(opt.get(), options.relative) > 0);
  CHECK(nlopt_set_maxeval(opt.get(), options.evaluations) > 0);
  double value = 0;
  // That rounding ends the search (a failure to NLopt) is no error: the best point counts.
  (void)nlopt_optimize(opt.get(), start.data(), &value);
  return search.best;
}

}  // namespace trainyard::solver
