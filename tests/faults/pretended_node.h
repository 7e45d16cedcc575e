// SPDX-License-Identifier: Apache-2.0
// What a node of the pretended world has under its agent: processes and copies of data sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "faults/simulation.h"
#include "faults/stage_workers.h"
#include "faults/witness.h"
#include "live/agent/agent.h"
#include "supervisor/processes.h"
#include "trainyard/live.pb.h"

namespace trainyard::faults {

class World;

// The workers of an attempt on all its nodes: they advance only together.
struct Gang {
  std::optional<TimePoint> since;  // all of them are there
  std::optional<TimePoint> until;  // one has gone
  double done_before = 0;
  double rate = 0;
  double restart_cost_s = 0;
  std::int64_t order = -1;  // of the last change of the rate

  [[nodiscard]] double ProductiveBy(TimePoint now) const {
    return since ? std::max(0.0, Seconds(until.value_or(now) - *since) - restart_cost_s) : 0;
  }
};

// What is wrong with a node for a while.
struct Sickness {
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;  // that: workers fail
  std::string message;
  double chance = 1;  // that an attempt is hit
  TimePoint until{};
};

// What the engine granted to an attempt, and in which of the controller's steps it held.
struct Granted {
  Grant grant;
  TimePoint since{};  // that it is as it is
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
};

// The processes of one node: they outlive the agent, but not the node.
class PretendedProcesses final : public supervisor::Processes {
 public:
  struct Running {
    v1::StartAttempt start;
    v1::AttemptReport report;
    bool alive = true;
    int loader_workers = 0;  // as it has been told last
    std::int64_t tuned = -1;
  };

  PretendedProcesses(World& world, int node);

  std::vector<v1::AttemptReport> Recover() override;
  void Start(const v1::StartAttempt& start) override;
  void Stop(const v1::AttemptId& attempt, Duration grace) override;
  void Tune(const v1::TuneAttempt& tune) override;
  void SetLease(Duration from_now, Duration grace) override;
  void Forget(const v1::AttemptId& attempt) override {
    attempts_.erase({attempt.job(), attempt.attempt()});
  }
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& /*attempt*/, int /*rank*/,
                                std::uint64_t /*offset*/) override {
    return v1::LogsReply();
  }
  std::vector<v1::AttemptReport> TakeReports() override { return std::exchange(reports_, {}); }

  void LoseAll();  // the node has crashed
  void LoseAgent() { stages_.LoseAgent(); }
  [[nodiscard]] int turns() const { return stages_.turns(); }
  void Fail(AttemptKey key, const Sickness& sickness);
  // A worker fails, as another part of the attempt has gone.
  void FailForOthers(AttemptKey key);
  void Finish(AttemptKey key);
  [[nodiscard]] const std::map<AttemptKey, Running>& attempts() const { return attempts_; }

 private:
  void Exit(AttemptKey key, bool killed);
  void NoteEnd(const AttemptKey& key);
  void TellProgress(AttemptKey key, double pace);
  [[nodiscard]] double DoneBy(const Running& attempt) const;
  void Tell(const v1::AttemptReport& report);

  World& world_;
  int node_;
  std::map<AttemptKey, Running> attempts_;
  std::vector<v1::AttemptReport> reports_;
  std::uint64_t lease_number_ = 0;
  TimePoint lease_end_ = kEndOfTime;
  Duration lease_grace_{0};
  StageWorkers stages_;
};

// The copies of data sets on the disk of one node, which survive agent and node, and what is being
// fetched, which does not.
class PretendedStore final : public supervisor::DataStore {
 public:
  PretendedStore(World& world, int node) : world_(world), node_(node) {}

  std::vector<v1::DataCopy> Recover() override;
  void Fetch(const v1::DataSet& data) override;
  void Remove(const std::string& name) override;
  std::string FolderOf(const std::string& name) const override { return "/copies/" + name; }
  std::vector<supervisor::FetchReport> TakeReports() override {
    return std::exchange(reports_, {});
  }

  void LoseAgent();
  void LoseDisk() {
    LoseAgent();
    copies_.clear();
    broken_.clear();
  }
  [[nodiscard]] bool Has(const std::string& name) const {
    const auto copy = copies_.find(name);
    return copy != copies_.end() && copy->second.mib() > 0;
  }
  static constexpr std::int64_t kRoom = 100;

 private:
  void Tell(supervisor::FetchReport report);

  World& world_;
  int node_;
  std::map<std::string, v1::DataCopy> copies_;
  std::set<std::string> fetching_;
  std::set<std::string> broken_;
  std::uint64_t life_ = 0;  // of the agent
  std::vector<supervisor::FetchReport> reports_;
};

}  // namespace trainyard::faults
