// SPDX-License-Identifier: Apache-2.0
#include "policies/gavel/problem_of.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/text.h"
#include "model/request/could_have.h"

namespace trainyard::policies {

Result<std::map<std::string, double>> ParsePrices(std::string_view text) {
  std::map<std::string, double> prices;
  if (text.empty()) {
    return prices;
  }
  for (const std::string_view one : base::Split(text, "/")) {
    const std::size_t colon = one.find(':');
    const std::optional<double> price =
        colon == std::string_view::npos ? std::nullopt : base::ToNumber(one.substr(colon + 1));
    if (!price || *price <= 0) {
      return InvalidArgument("prices '" + std::string(text) +
                             "'; expected TYPE:PRICE for each type of GPU, with / between them and "
                             "prices > 0");
    }
    prices[std::string(one.substr(0, colon))] = *price;
  }
  return prices;
}

ProblemOf::ProblemOf(const Snapshot& snapshot, bool pairs,
                     const std::map<std::string, double>& prices)
    : snapshot_(snapshot), classes_(*snapshot.cluster) {
  const std::vector<GpuType>& types = classes_.types().types();
  problem_.gpus.assign(types.size(), 0.0);
  node_of_.assign(types.size(), NodeAt(0));
  for (std::size_t i = snapshot.cluster->nodes.size(); i > 0; --i) {
    if (snapshot.up(NodeAt(i - 1))) {
      const std::size_t type = classes_.types().of(NodeAt(i - 1));
      problem_.gpus[type] += snapshot.cluster->nodes[i - 1].gpus;
      node_of_[type] = NodeAt(i - 1);
    }
  }
  for (const GpuType& type : types) {
    const auto price = prices.find(type.name);
    problem_.prices.push_back(price == prices.end() ? 1 : price->second);
  }
  for (const JobId id : snapshot.jobs->live()) {
    AddJob(snapshot.jobs->at(id));
  }
  if (pairs) {
    AddPairs();
  }
}

void ProblemOf::AddJob(const JobView& view) {
  const JobSpec& spec = *view.spec;
  const model::NodeClassSet accepted = classes_.Accepted(spec);
  const model::GpuTypeSet types =
      classes_.types().several() ? classes_.TypesOf(accepted) : model::GpuTypes::SetBelow(1);
  AllocationJob job{.id = view.id,
                    .gpus = spec.gpus,
                    .weight = spec.priority > 0 ? static_cast<double>(spec.priority) : 1.0,
                    .work_left = std::max(view.work_left.value_or(0), 1e-9),
                    .age = Seconds(snapshot_.now - spec.submit),
                    .time_left = spec.deadline ? Seconds(*spec.deadline - snapshot_.now)
                                               : std::numeric_limits<double>::infinity()};
  bool runs = false;
  for (std::size_t j = 0; j < problem_.types(); ++j) {
    // All GPUs of a job are of one type here, with what it asks for beside them.
    const bool has =
        (types >> j & 1U) != 0 && problem_.gpus[j] >= spec.gpus &&
        (!classes_.types().several() ||
         model::CouldHave(*snapshot_.cluster, classes_, spec, spec.gpus, classes_.OfType(j)));
    const GpuType& type = classes_.types().types()[j];
    job.rates.push_back(has ? snapshot_.rates->RateOn(spec, spec.gpus, type) : 0);
    runs = runs || job.rates.back() > 0;
  }
  if (!runs) {
    return;
  }
  const bool may_share = !(spec.traits && spec.traits->request);
  if (spec.profile_row >= 0 && may_share) {
    const int next = static_cast<int>(kinds_.size());
    const auto [kind, is_new] =
        kinds_.emplace(std::tuple(spec.profile_row, spec.gpus, accepted), next);
    job.kind = kind->second;
    if (is_new) {
      of_kind_.push_back(problem_.jobs.size());
    }
  }
  problem_.jobs.push_back(std::move(job));
  views_.push_back(view);
}

double ProblemOf::RateBeside(std::size_t job, std::size_t other, std::size_t type) const {
  const JobSpec& spec = *views_[job].spec;
  const std::array<const JobSpec*, 1> others{views_[other].spec};
  const Grant grant{.gpus = spec.gpus,
                    .slices = {{.node = node_of_[type], .gpus = 1}},
                    .sharing = Sharing::kCollocated};
  return snapshot_.rates->RateUnder(spec, grant, {.collocated = others});
}

// Of jobs of two kinds on the same GPUs; types on which one of them does not run have rates of 0.
PairRates ProblemOf::RatesOfPair(std::size_t first_kind, std::size_t second_kind) const {
  const std::size_t first = of_kind_[first_kind];
  const std::size_t second = of_kind_[second_kind];
  PairRates pair{.first = static_cast<int>(first_kind), .second = static_cast<int>(second_kind)};
  for (std::size_t j = 0; j < problem_.types(); ++j) {
    const bool alone = problem_.jobs[first].rates[j] > 0 && problem_.jobs[second].rates[j] > 0;
    const double rate = alone ? RateBeside(first, second, j) : 0;
    const double other = alone ? RateBeside(second, first, j) : 0;
    const bool both = rate > 0 && other > 0;
    pair.first_rates.push_back(both ? rate : 0);
    pair.second_rates.push_back(both ? other : 0);
  }
  return pair;
}

void ProblemOf::AddPairs() {
  for (std::size_t a = 0; a < of_kind_.size(); ++a) {
    for (std::size_t b = a; b < of_kind_.size(); ++b) {
      if (problem_.jobs[of_kind_[a]].gpus != problem_.jobs[of_kind_[b]].gpus) {
        continue;
      }
      PairRates pair = RatesOfPair(a, b);
      if (std::any_of(pair.first_rates.begin(), pair.first_rates.end(),
                      [](double rate) { return rate > 0; })) {
        problem_.pairs.push_back(std::move(pair));
      }
    }
  }
}

}  // namespace trainyard::policies
