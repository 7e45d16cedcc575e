// SPDX-License-Identifier: Apache-2.0
// Writes the views of a live world: brings those entries up to date whose jobs and nodes have been
// touched since, and publishes the whole after each step.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "live/live_state.h"
#include "live/view/cluster_view.h"
#include "live/view/statuses.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine

namespace trainyard::live {

class ViewWriter {
 public:
  // Both must outlive it. What touches a job or a node must tell `state.touched`.
  ViewWriter(LiveState& state, const engine::Engine& engine)
      : ViewWriter(state, state.touched, engine) {}
  ViewWriter(const ViewWriter&) = delete;
  ViewWriter& operator=(const ViewWriter&) = delete;

  // As of this very moment, also within a step; without a look at all jobs: the order of those that
  // wait is that of the last view. Valid until the next call of the writer. O(touched).
  [[nodiscard]] Statuses Now();
  // A step is over. O(touched + jobs / 256), and now and then the order of the jobs that wait.
  void Publish();
  // Everything may have changed, as after a restart.
  void TouchAll();

  // The last that has been published, for any thread. REQUIRES: there is one.
  [[nodiscard]] std::shared_ptr<const ClusterView> Published() const;

  // For tests: where the last view is not what a writer says that begins anew; empty: nowhere.
  // O(jobs).
  [[nodiscard]] std::string WhyStale();

 private:
  ViewWriter(const LiveState& state, model::Touched& touched, const engine::Engine& engine)
      : state_(state), touched_(touched), engine_(engine) {}
  void TouchFailing();
  void Refresh();
  void RefreshAll();
  void RefreshJob(JobId id);
  void RefreshNode(NodeId id);
  void RefreshOrder();

  const LiveState& state_;  // reading a part that may change touches it
  model::Touched& touched_;
  const engine::Engine& engine_;
  ClusterView draft_;
  bool all_ = true;                         // is to be made anew
  engine::SharedConfiguration decided_by_;  // the engine's, by which jobs have kinds of demands
  std::uint64_t failures_ = 0;              // FailureBook::changes() of the entries
  std::vector<JobId> failing_;              // the jobs that it knew then
  std::set<JobId> unclassed_;               // live jobs without `kind`
  std::size_t kinds_ = 0;                   // that there were then
  std::set<JobId> holders_;                 // as draft_.holders will be
  bool holders_changed_ = true;
  std::int64_t decisions_ = 0;  // of which draft_.blocked is
  std::uint64_t measured_ = 0;  // LiveState::measured_facts of draft_.profiles
  // The engine's step of which draft_.order is: its time, facts and decisions so far.
  std::tuple<TimePoint, std::int64_t, std::int64_t> ordered_at_{};
  std::uint64_t since_order_ = 0;  // views since draft_.order was made

  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<const ClusterView> published_;
};

}  // namespace trainyard::live
