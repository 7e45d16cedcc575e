// SPDX-License-Identifier: Apache-2.0
// Owns who has held which GPUs for how long, day by day, since the state began: a sum for each
// user, account, queue, model and node. Of jobs that share a GPU, each holds it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  std::string account{};
  std::string queue{};
  std::string model{};
  std::string node{};

  void Serialize(StateStream& state) { state(user, account, queue, model, node); }
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
  explicit Usage(const LiveOptions& options) : options_(options), days_(std::make_shared<Days>()) {}

  // A job with that request gets or loses GPUs at that time.
  void Note(const model::Action& action, TimePoint at, const v1::JobRequest& request,
            const Cluster& cluster);
  // What the job holds; null: nothing. What has been given out does not change any more.
  [[nodiscard]] std::shared_ptr<const Holding> HeldBy(JobId job) const;
  // All that has been given back. Likewise.
  [[nodiscard]] std::shared_ptr<const Days> days() const {
    given_out_ = true;
    return days_;
  }
  // Calls `add` for each day and node with what is held until then. `options`: of the controller.
  using AddPart = std::function<void(std::int64_t day, UsageKey key, Duration time)>;
  static void ForEachPart(const Holding& holding, TimePoint until, const LiveOptions& options,
                          const AddPart& add);

  void Serialize(StateStream& state);

 private:
  [[nodiscard]] Day& Edit(std::int64_t day);

  const LiveOptions& options_;
  std::map<JobId, std::shared_ptr<const Holding>> held_;
  std::shared_ptr<Days> days_;
  mutable bool given_out_ = false;                    // by days(); the next change is one of a copy
  std::map<std::int64_t, std::shared_ptr<Day>> own_;  // those of `days_` that nobody else has
};

}  // namespace trainyard::live
