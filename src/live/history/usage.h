// SPDX-License-Identifier: Apache-2.0
// Owns who has held which GPUs for how long, day by day, since the state began: a sum for each
// user, queue, model and node. Of jobs that share a GPU, each holds it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "live/live_options.h"
#include "model/event.h"
#include "trainyard/cluster.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct UsageKey {
  std::string user{};
  std::string queue{};
  std::string model{};
  std::string node{};

  void Serialize(StateStream& state) { state(user, queue, model, node); }
  friend auto operator<=>(const UsageKey&, const UsageKey&) = default;  // NOLINT
};

// What a job holds from some time on.
struct Holding {
  TimePoint since{};
  UsageKey of{};                                    // without a node
  std::vector<std::pair<std::string, int>> gpus{};  // by node

  void Serialize(StateStream& state) { state(since, of, gpus); }
};

class Usage {
 public:
  using Day = std::map<UsageKey, Duration>;  // GPU time, as the engine counts it
  using Days = std::map<std::int64_t, std::shared_ptr<const Day>>;  // since 1970, UTC

  // Must outlive it.
  explicit Usage(const LiveOptions& options)
      : options_(options), days_(std::make_shared<const Days>()) {}

  // A job with that request gets or loses GPUs at that time.
  void Note(const model::Action& action, TimePoint at, const v1::JobRequest& request,
            const Cluster& cluster);
  // What the job holds; null: nothing. What has been given out does not change any more.
  [[nodiscard]] std::shared_ptr<const Holding> HeldBy(JobId job) const;
  // All that has been given back. Likewise.
  [[nodiscard]] std::shared_ptr<const Days> days() const { return days_; }
  // Adds what is held until then. `options`: of the controller.
  static void Add(const Holding& holding, TimePoint until, const LiveOptions& options, Days& days);

  void Serialize(StateStream& state);

 private:
  const LiveOptions& options_;
  std::map<JobId, std::shared_ptr<const Holding>> held_;
  std::shared_ptr<const Days> days_;
};

}  // namespace trainyard::live
