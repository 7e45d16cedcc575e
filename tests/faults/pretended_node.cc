// SPDX-License-Identifier: Apache-2.0
#include "faults/pretended_node.h"

#include <fmt/format.h>

#include "faults/world.h"

namespace trainyard::faults {

// -------------------------------------------------------------------------------------- processes

PretendedProcesses::PretendedProcesses(World& world, int node)
    : world_(world),
      node_(node),
      stages_(
          {.now = [this] { return world_.now(); },
           .after = [this](Duration delay,
                           std::function<void()> what) { world_.After(delay, std::move(what)); },
           .between = [this](Duration a, Duration b) { return world_.Between(a, b); },
           .chance = [this](double p) { return world_.Chance(p); },
           .violated = [this](const std::string& what) { world_.Violated(what); },
           .no_turns = world.options().bug == PlantedBug::kNoTurns}) {}

double PretendedProcesses::DoneBy(const Running& attempt) const {
  const Gang& gang = world_.GangOf(attempt.start.id());
  return std::min(attempt.start.iterations(),
                  gang.done_before + gang.ProductiveBy(world_.now()) * gang.rate);
}

void PretendedProcesses::Tell(const v1::AttemptReport& report) {
  reports_.push_back(report);
  world_.OnReports(node_);
}

std::vector<v1::AttemptReport> PretendedProcesses::Recover() {
  std::vector<v1::AttemptReport> reports;
  reports_.clear();
  for (const auto& [key, attempt] : attempts_) {
    reports.push_back(attempt.report);
    if (!attempt.start.data_folder().empty() && world_.options().bug != PlantedBug::kForgetsUse) {
      reports.back().set_data_set(attempt.start.data_set().name());
    }
  }
  return reports;
}

void PretendedProcesses::Start(const v1::StartAttempt& start) {
  if (world_.options().bug == PlantedBug::kLosesStarts && world_.Chance(0.1)) {
    return;
  }
  world_.CheckStart(node_, start);
  const AttemptKey key{start.id().job(), start.id().attempt()};
  Running& attempt = attempts_[key];
  attempt.start = start;
  *attempt.report.mutable_id() = start.id();
  *attempt.report.mutable_gpus() = start.gpus();
  attempt.report.set_state(v1::AttemptReport::RUNNING);
  if (const std::optional<Sickness> sickness = world_.SicknessAt(node_)) {
    const bool starts = sickness->cause == v1::AttemptReport::CAUSE_UNSPECIFIED ||
                        sickness->cause == v1::AttemptReport::SUPERVISOR_LOST ||
                        (sickness->cause == v1::AttemptReport::DEVICE && world_.Chance(0.7));
    ++world_.result().node_failures;
    if (!starts) {
      return Fail(key, *sickness);
    }
    world_.After(world_.Between(milliseconds(1), seconds(40)),
                 [this, key, sickness] { Fail(key, *sickness); });
  }
  attempt.loader_workers = start.share().loader_workers();
  if (start.has_turns()) {
    stages_.Start(key, supervisor::MaskOf(start.gpus()), start.turns());
  }
  Tell(attempt.report);
  if (start.launch().workers() != v1::LaunchSpec::EMULATED && start.node_rank() == 0) {
    TellProgress(key, world_.Chance(0.1) ? 8 : 1 + static_cast<double>(world_.Pick(5)));
  }
  world_.launches().Begin(node_, start);
  if (lease_end_ <= world_.now()) {  // supervisors look at once
    Stop(start.id(), lease_grace_);
  }
}

// Of workers that are measured. They advance as the controller thinks, and say that they were so
// many times slower.
void PretendedProcesses::TellProgress(AttemptKey key, double pace) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  Running& attempt = at->second;
  const Gang& gang = world_.GangOf(attempt.start.id());
  if (gang.since && attempt.report.state() == v1::AttemptReport::RUNNING) {
    attempt.report.set_iterations(DoneBy(attempt));
    attempt.report.set_first_progress_s(0.1);
    attempt.report.set_progress_s(0.1 + pace * Seconds(world_.now() - *gang.since));
    attempt.report.clear_stages();
    for (const v1::Stage stage : {v1::LOAD, v1::FORWARD, v1::COMMUNICATION}) {
      v1::StageSeconds& seconds = *attempt.report.add_stages();
      seconds.set_stage(stage);
      seconds.set_seconds(pace * static_cast<double>(1 + world_.Pick(9)) / 10);
    }
    Tell(attempt.report);
  }
  world_.After(world_.Between(seconds(1), seconds(10)),
               [this, key, pace] { TellProgress(key, pace); });
}

// All of a gang's nodes are told; it changes its pace with the first.
void PretendedProcesses::Tune(const v1::TuneAttempt& tune) {
  const AttemptKey key{tune.id().job(), tune.id().attempt()};
  Gang& gang = world_.GangOf(tune.id());
  const auto at = attempts_.find(key);
  if (at != attempts_.end()) {
    if (world_.options().bug == PlantedBug::kLostShares && world_.Chance(0.5)) {
      return;
    }
    if (tune.order() <= at->second.tuned) {
      world_.Violated(fmt::format("job {} is tuned by an old order", key.first));
    }
    at->second.tuned = tune.order();
    at->second.loader_workers = tune.share().loader_workers();
    world_.CountTune();
  }
  if (at == attempts_.end() || !at->second.alive || tune.order() <= gang.order || gang.until) {
    return;
  }
  gang.order = tune.order();
  const double rate = RateOf(at->second.start, tune.rate());
  if (gang.since) {
    gang.done_before = DoneBy(at->second);
    const double gone_s = Seconds(world_.now() - *gang.since);
    gang.restart_cost_s = std::max(0.0, gang.restart_cost_s - gone_s);
    gang.since = world_.now();
    const double left = std::max(0.0, at->second.start.iterations() - gang.done_before);
    world_.FinishIn(FromSeconds(gang.restart_cost_s + left / rate), key);
  }
  gang.rate = rate;
}

void PretendedProcesses::Finish(AttemptKey key) {
  const auto at = attempts_.find(key);
  if (at != attempts_.end() && at->second.alive &&
      DoneBy(at->second) >= at->second.start.iterations()) {
    at->second.report.set_finished(true);
    Exit(key, false);
  }
}

void PretendedProcesses::Exit(AttemptKey key, bool killed) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  Running& attempt = at->second;
  attempt.alive = false;
  NoteEnd(key);
  world_.launches().Leave(node_, key, attempt.report.finished());
  attempt.report.set_state(v1::AttemptReport::EXITED);
  attempt.report.set_exit_code(killed ? 137 : 0);
  Gang& gang = world_.GangOf(attempt.start.id());
  gang.until = gang.until.value_or(world_.now());
  if (!killed) {
    const double done = DoneBy(attempt);
    attempt.report.set_iterations(done);
    attempt.report.set_checkpointed_iterations(done);
    double& saved = world_.checkpoints()[key.first];
    saved = std::max(saved, done);
  }
  Tell(attempt.report);
}

void PretendedProcesses::Fail(AttemptKey key, const Sickness& sickness) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  at->second.alive = false;
  NoteEnd(key);
  world_.launches().Leave(node_, key, false);
  Gang& gang = world_.GangOf(at->second.start.id());
  gang.until = gang.until.value_or(world_.now());
  v1::AttemptReport& report = at->second.report;
  world_.Trace(fmt::format("job {} attempt {} fails on n{}: {}", key.first, key.second, node_,
                           sickness.message));
  report.set_state(v1::AttemptReport::EXITED);
  report.set_message(sickness.message);
  const bool workers_failed = sickness.cause == v1::AttemptReport::CAUSE_UNSPECIFIED;
  if (sickness.cause != v1::AttemptReport::SUPERVISOR_LOST) {
    report.set_failed_at(world_.WallSeconds(node_));
  }
  if (workers_failed) {
    report.set_exit_code(1);
  } else if (sickness.cause == v1::AttemptReport::SUPERVISOR_LOST) {
    report.set_exit_code(137);
    report.set_lost(true);
  } else {
    report.set_exit_code(126);
  }
  if (world_.options().bug != PlantedBug::kBlamesJobs) {
    report.set_cause(sickness.cause);
  }
  Tell(report);
}

// One that has had notice leaves for that.
void PretendedProcesses::FailForOthers(AttemptKey key) {
  const auto at = attempts_.find(key);
  if (at != attempts_.end() && at->second.alive &&
      at->second.report.state() == v1::AttemptReport::RUNNING) {
    ++world_.result().failed_for_others;
    Fail(key, {v1::AttemptReport::CAUSE_UNSPECIFIED,
               fmt::format("worker {} ended with exit code 1", at->second.start.first_rank())});
  }
}

// Nothing is left of the attempt's part.
void PretendedProcesses::NoteEnd(const AttemptKey& key) {
  stages_.Leave(key);
  const v1::StartAttempt& start = attempts_.at(key).start;
  if (world_.options().bug == PlantedBug::kLeavesDaemons && start.node_rank() > 0 &&
      StarterOf(start.launch()) == Starter::kMpi) {
    return world_.After(seconds(60), [this, key] { world_.NoteEnd(node_, key); });
  }
  world_.NoteEnd(node_, key);
}

void PretendedProcesses::Stop(const v1::AttemptId& id, Duration grace) {
  const AttemptKey key{id.job(), id.attempt()};
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.alive) {
    return;
  }
  if (at->second.report.state() == v1::AttemptReport::RUNNING) {
    at->second.report.set_lost(true);
    at->second.report.set_state(world_.options().bug == PlantedBug::kDoubleGrant
                                    ? v1::AttemptReport::EXITED
                                    : v1::AttemptReport::STOPPING);
    Tell(at->second.report);
  }
  const bool stubborn = world_.Chance(0.1);
  world_.After(stubborn ? grace : world_.Between(Duration{0}, grace),
               [this, key, stubborn] { Exit(key, stubborn); });
}

void PretendedProcesses::SetLease(Duration from_now, Duration grace) {
  const std::uint64_t number = ++lease_number_;
  if (world_.options().bug == PlantedBug::kNoFencing) {
    return;
  }
  lease_end_ = world_.now() + from_now;
  lease_grace_ = grace;
  world_.After(std::max(Duration{0}, from_now), [this, number, grace] {
    if (number != lease_number_) {
      return;
    }
    for (auto& [key, attempt] : attempts_) {
      if (attempt.alive) {
        Stop(attempt.report.id(), grace);
      }
    }
  });
}

void PretendedProcesses::LoseAll() {
  for (auto& [key, attempt] : attempts_) {
    if (attempt.alive) {
      attempt.alive = false;
      NoteEnd(key);
      world_.launches().Leave(node_, key, false);
      attempt.report.set_state(v1::AttemptReport::EXITED);
      attempt.report.set_exit_code(137);
      attempt.report.set_lost(world_.options().bug != PlantedBug::kForgetsLoss);
      Gang& gang = world_.GangOf(attempt.start.id());
      gang.until = gang.until.value_or(world_.now());
    }
  }
}

// --------------------------------------------------------------------------------------- data sets

void PretendedStore::Tell(supervisor::FetchReport report) {
  reports_.push_back(std::move(report));
  world_.OnReports(node_);
}

std::vector<v1::DataCopy> PretendedStore::Recover() {
  std::vector<v1::DataCopy> found;
  for (const auto& [name, copy] : copies_) {
    found.push_back(copy);
  }
  return found;
}

void PretendedStore::LoseAgent() {
  ++life_;
  world_.result().broken_fetches += static_cast<int>(fetching_.size());
  broken_.merge(fetching_);
  fetching_.clear();
  reports_.clear();
}

void PretendedStore::Fetch(const v1::DataSet& data) {
  const std::string& name = data.name();
  if (Has(name) || !fetching_.insert(name).second) {
    world_.Violated(fmt::format("{} is fetched onto n{} twice", name, node_));
  }
  *copies_[name].mutable_set() = data;
  world_.result().resumed_fetches += static_cast<int>(broken_.erase(name));
  std::int64_t mib = 0;
  for (const auto& [other, copy] : copies_) {
    mib += copy.set().mib();
  }
  if (mib > kRoom) {
    world_.Violated(fmt::format("n{} keeps {} MiB of data sets", node_, mib));
  }
  const Duration takes = world_.Between(milliseconds(100), seconds(90));
  world_.After(takes / 2, [this, name, life = life_] {
    if (life == life_) {
      Tell({.name = name, .fetched = 0.5});
    }
  });
  // Where there are others: what no node can fetch is the fault of the job that names it.
  const bool may_fail =
      (name.back() - '0') % world_.options().nodes == node_ && world_.AllNodesServe();
  const bool fails = may_fail && world_.FaultsGoOn() && world_.Chance(0.2);
  world_.After(takes, [this, name, fails, life = life_] {
    if (life != life_) {
      return;
    }
    fetching_.erase(name);
    if (fails && world_.AllNodesServe()) {  // still
      ++world_.result().failed_fetches;
      return Tell({.name = name,
                   .ended = true,
                   .error = "ssh: connect to host store port 22: Connection refused",
                   .cause = v1::AttemptReport::DATA});
    }
    ++world_.result().fetches;
    copies_[name].set_mib(copies_[name].set().mib());
    copies_[name].set_fetched_at(world_.WallSeconds(node_));
    Tell({.name = name, .ended = true, .mib = copies_[name].mib()});
  });
}

void PretendedStore::Remove(const std::string& name) {
  if (fetching_.contains(name)) {
    world_.Violated(fmt::format("{} is removed from n{} as it is fetched", name, node_));
  }
  for (const auto& [key, attempt] : world_.ProcessesOf(node_).attempts()) {
    if (attempt.alive && !attempt.start.data_folder().empty() &&
        attempt.start.data_set().name() == name) {
      world_.Violated(fmt::format("{} is removed from n{} under job {}", name, node_, key.first));
    }
  }
  world_.result().removed_copies += Has(name) ? 1 : 0;
  copies_.erase(name);
  broken_.erase(name);
}

}  // namespace trainyard::faults
