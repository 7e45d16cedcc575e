// SPDX-License-Identifier: Apache-2.0
// What checks the guarantees of docs/guarantees.md and shares no state with what it checks: the
// witness of the nodes, which writes down what their processes do, and the accounts, which are kept
// of decisions as they reach the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "model/event.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard::faults {

using AttemptKey = std::pair<std::uint64_t, std::uint32_t>;  // job, attempt

// Each attempt writes down on its node when it begins and when nothing of it is left.
class Witness {
 public:
  using MayShare = std::function<bool(const AttemptKey&, const AttemptKey&)>;

  // What is wrong with that; empty: nothing.
  [[nodiscard]] std::string Begin(int node, const AttemptKey& attempt, const std::vector<int>& gpus,
                                  const MayShare& may_share);
  void End(int node, const AttemptKey& attempt);
  // Whether anything of the job is there; of any job.
  [[nodiscard]] bool IsOn(int node, std::uint64_t job) const;
  [[nodiscard]] bool IsIdle() const { return present_.empty(); }
  [[nodiscard]] std::uint64_t begun() const { return begun_; }

 private:
  std::map<std::pair<int, AttemptKey>, std::vector<int>> present_;
  std::uint64_t begun_ = 0;
};

// What jobs hold, by the actions of the engine alone.
class Accounts final : public engine::DecisionObserver {
 public:
  struct Victim {
    JobId job{};
    Grant grant{};  // that it has lost
  };
  struct Step {
    TimePoint at{};  // by the controller's clock
    std::vector<Victim> victims;
    std::set<JobId> beneficiaries;  // who get GPUs, or others
    // Who get GPUs of a node of which they had none.
    std::vector<std::pair<JobId, NodeId>> newcomers;
  };

  // `forgetful`: a planted bug, GPUs that are taken away are charged on.
  explicit Accounts(bool forgetful) : forgetful_(forgetful) {}
  void OnDecision(const engine::DecisionSample& /*sample*/) override {}
  void OnStep(TimePoint now, std::span<const model::Action> actions) override;

  // The controller has crashed: what it has decided and not written has never been.
  void Lose() { steps_.clear(); }
  // What has been decided since is on disk.
  [[nodiscard]] std::vector<Step> Commit();
  // A controller that starts again has gone through its journal; steps that were in it and that
  // this has not seen have taken no time.
  void Adopt(std::span<const model::JobRecord> records, TimePoint now);
  // Another program has gone through the journal, in several ways: what it has told of them cannot
  // be told apart. What jobs are charged so far is taken from it.
  void BeginAnew(std::span<const model::JobRecord> records, TimePoint now);
  // The first job that has ended and was not charged what it held; empty: there is none.
  [[nodiscard]] std::string FindWrongCharge(std::span<const model::JobRecord> records);
  // For how long the job has had GPUs and run by then, as one that holds some and waits for more
  // does not; and all jobs that have GPUs.
  [[nodiscard]] Duration HeldBy(JobId job, TimePoint now) const;
  [[nodiscard]] std::vector<std::pair<JobId, Duration>> Holders(TimePoint now) const;
  [[nodiscard]] int charges_compared() const { return compared_; }

 private:
  struct Holding {
    Grant grant{};
    TimePoint since{};
    std::int64_t gpu_micros = 0;
    Duration held{0};  // with GPUs, running
    bool compared = false;
  };
  struct Decided {
    TimePoint at{};
    std::vector<model::Action> actions;
  };
  void Hold(JobId job, const Grant& grant, TimePoint now);
  void NoteNewcomer(const model::Action& action, Step& step) const;
  void Take(const Decided& decided, Step& step);

  bool forgetful_;
  std::vector<Holding> holdings_;  // by job
  std::vector<Decided> steps_;     // not on disk yet
  TimePoint last_{};
  int compared_ = 0;
};

}  // namespace trainyard::faults
