// SPDX-License-Identifier: Apache-2.0
// What is known of a training by type of GPU: it reports the type where it runs (or ran last), and
// what it has said of others is kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/goodput/goodput_report.h"
#include "trainyard/state.h"

namespace trainyard::policies {

struct KnownType {
  std::int64_t number = 0;  // profile::NumberOfType
  profile::StepTimes times;
  profile::BatchLimits limits;
  int tried_gpus = 0;  // the most that it has measured itself on
  int most_gpus = 0;   // that it can use; 0: not stated

  friend bool operator==(const KnownType&, const KnownType&) = default;
  void Serialize(StateStream& state) {
    state(number, times.alpha_compute, times.beta_compute, times.alpha_network, times.beta_network,
          times.alpha_node, times.beta_node, times.gamma, limits.initial, limits.most,
          limits.least_part, limits.most_part, tried_gpus, most_gpus);
  }
};

struct KnownTraining {
  std::vector<KnownType> types;  // in the order in which they became known
  profile::GradientNoise noise;

  friend bool operator==(const KnownTraining&, const KnownTraining&) = default;
  // Null: nothing is known of it.
  [[nodiscard]] const KnownType* On(std::int64_t number) const;
  // `reported`: of JobView. `held`: the number of the type that the job holds or held last, where
  // the report states none.
  void Note(std::span<const Metric> reported, std::int64_t held);
  // The most GPUs that it may be given: twice those that it has tried on any type, so that it is
  // not put on many on the strength of a guess. REQUIRES: a type is known.
  [[nodiscard]] int MostGpus() const;
  [[nodiscard]] profile::GoodputModel ModelOn(const KnownType& type) const {
    return {.times = type.times, .noise = noise, .limits = type.limits};
  }

  void Serialize(StateStream& state) { state(types, noise.square, noise.variance); }
};

}  // namespace trainyard::policies
