// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "faults/world.h"

namespace trainyard::faults {
namespace {

// Any of these may take the place of any other.
constexpr std::array kChanging{"fifo", "srtf", "las", "tiresias", "srsf"};

}  // namespace

// ----------------------------------------------------------------------------------------- faults

void World::PlanFault() {
  if (FaultsGoOn()) {
    After(Between(milliseconds(100), seconds(60)), [this] {
      Fault();
      PlanFault();
    });
  }
}

void World::Fault() {
  last_fault_ = now_;
  const int node = static_cast<int>(Pick(static_cast<std::size_t>(options_.nodes)));
  const auto n = static_cast<std::size_t>(node);
  switch (Pick(10)) {
    case 0:
      return CrashController();
    case 1:
      Trace(fmt::format("agent n{} crashes", node));
      ++result_.agent_crashes;
      CountStates(FaultKind::kAgentCrash, n);
      return CrashAgent(node);
    case 2:
      Trace(fmt::format("node n{} crashes", node));
      ++result_.node_crashes;
      return CrashNode(n);
    case 3:
      if (links_[n] != 0) {
        Trace(fmt::format("connection of n{} breaks", node));
        CountStates(FaultKind::kBrokenConnection, n);
        Break(links_[n], Chance(0.5));
      }
      return;
    case 4:
      ++result_.partitions;
      return CutOff(n);
    case 5:
    case 6:
      return FallSick(n);
    case 7:
      Trace("the controller's disk is full");
      ++result_.full_disks;
      CountStates(FaultKind::kFullDisk, {});
      disk_.SetFull(true);
      return After(Between(seconds(1), seconds(200)), [this] {
        disk_.SetFull(false);
        full_until_ = now_;
      });
    case 8:
      return JumpClock(n);
    default:
      return DrainOrNot(n);
  }
}

void World::CrashNode(std::size_t node) {
  CountStates(FaultKind::kNodeCrash, node);
  const bool with_disk = Chance(0.2);
  if (with_disk) {
    CountStates(FaultKind::kDiskLost, node);
  }
  processes_[node]->LoseAll();
  if (with_disk) {
    stores_[node]->LoseDisk();
  }
  CrashAgent(static_cast<int>(node));
}

// A partition: silence, and nobody notices for a while.
void World::CutOff(std::size_t node) {
  Trace(fmt::format("n{} is cut off", node));
  CountStates(FaultKind::kPartition, node);
  if (const auto at = connections_.find(links_[node]); at != connections_.end()) {
    at->second.silent = true;
    After(Between(seconds(1), seconds(180)), [this, number = at->first] { Break(number, true); });
  }
}

// Somebody sets it, or it is wrong when the machine starts: by up to an hour, forwards or back.
void World::JumpClock(std::size_t node) {
  ++result_.clock_jumps;
  CountStates(FaultKind::kClockJump, node);
  constexpr Duration kMost = std::chrono::hours(1);
  const Duration by = Chance(0.5) ? Between(-kMost, kMost) : Between(-seconds(90), seconds(90));
  Trace(fmt::format("the clock of n{} jumps by {:.3f} s", node, Seconds(by)));
  wall_clocks_[node] += by;
}

void World::DrainOrNot(std::size_t node) {
  if (lacks_programs_) {
    return;
  }
  v1::ClientRequest request;
  request.mutable_drain()->set_node(cluster_.nodes[node].name);
  request.mutable_drain()->set_drain(Chance(0.3));
  if (request.drain().drain()) {  // of its own random numbers: the other worlds are as they were
    request.mutable_drain()->set_finish(finishes_() % 2 == 0);
    request.mutable_drain()->set_deadline_s(request.drain().finish() && finishes_() % 2 == 0
                                                ? 20.0 + static_cast<double>(finishes_() % 200)
                                                : 0);
  }
  CountStates(request.drain().drain() ? FaultKind::kDrain : FaultKind::kUndrain, node);
  Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
}

void World::PlanSwitches() {
  constexpr unsigned kEvery = 4;
  if (options_.seed % kEvery != kEvery - 1) {
    return;
  }
  std::minstd_rand random(options_.seed);  // of its own: the other worlds are as they were
  for (Duration at = seconds(60 + random() % 200); at < kFaultsUntil;
       at += seconds(100 + random() % 400)) {  // one after the other: calls overtake one another
    After(at, [this, pauses = random() % 2 == 0, on_for = 5 + random() % 90] {
      Switch(pauses, true);
      After(seconds(on_for), [this, pauses] { Switch(pauses, false); });
    });
  }
}

bool CanChange(const std::string& policy) {
  return std::find(kChanging.begin(), kChanging.end(), policy) != kChanging.end();
}

// How many nodes the first partition has. Where all nodes that a job may have agree that it does
// not run there, it is its own fault: they are enough for that not to be their faults by chance.
int World::PartedNodes() const {
  return cluster_.nodes.size() < 4 || lacks_programs_ ? 0
                                                      : static_cast<int>(cluster_.nodes.size() / 2);
}

void World::PlanConfigurations() {
  if (configurations_ == nullptr) {
    return;
  }
  constexpr std::array kPlacements{"consolidated", "first-fit"};
  std::minstd_rand random(static_cast<std::uint32_t>(options_.seed) + 2);  // of its own
  for (Duration at = seconds(60 + random() % 100); at < kFaultsUntil;
       at += seconds(40 + random() % 300)) {
    FaultConfiguration next{.policy = kChanging.at(random() % kChanging.size()),
                            .placement = kPlacements.at(random() % kPlacements.size()),
                            .removed = static_cast<int>(random() % (2 * cluster_.nodes.size())) -
                                       static_cast<int>(cluster_.nodes.size()),
                            .parted = static_cast<int>(random() % 2) * PartedNodes()};
    // No partition of one node: its faults cannot be told from those of the jobs there.
    next.parted = next.removed < 0 ? next.parted : 0;
    After(at, [this, next] { ChangeConfiguration(next, false); });
  }
}

void World::ChangeConfiguration(FaultConfiguration next, bool insists) {
  next.removed = std::max(next.removed, -1);
  Trace(fmt::format("an admin asks for {}", next.Text()));
  v1::ClientRequest request;
  request.mutable_configure()->set_text(next.Text());
  request.mutable_configure()->set_rehearse(!insists && finishes_() % 4 == 0);
  Call(std::move(request), [this, next](const v1::ClientReply& reply) {
    if (reply.has_configure()) {
      configured_ = std::max(configured_, reply.configure().number());
      result_.configured += reply.configure().changes().empty() ? 0 : 1;
    } else if (reply.error().code() != kResourceExhausted) {
      Violated("another configuration is refused: " + reply.error().message());
    }
  });
}

void World::CheckConfiguration() {
  const engine::Configuration& now = controller_->engine().configuration();
  if (now.number < configured_) {
    Violated(
        fmt::format("configuration {}, of which an admin has been told, is lost: {} is in force",
                    configured_, now.number));
  }
  CheckPartitions(now);
}

// What a job has been given since the last look lies on nodes of its partition. `now`: what has
// been in force all the time since, or that does not matter.
void World::CheckPartitions(const engine::Configuration& now) {
  const std::optional<FaultConfiguration> of = FaultConfiguration::From(now.note);
  if (!of) {
    return;
  }
  const bool counts = std::exchange(parted_by_, now.number) == now.number;
  const std::span<const model::JobRecord> records = controller_->engine().records();
  seen_grants_.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Slices& held = records[i].grant.slices;
    if (held == seen_grants_[i]) {
      continue;
    }
    seen_grants_[i] = held;
    const bool of_first = records[i].spec->queue == kFirstNodes;
    result_.parted += counts && of->parted > 0 && !held.empty() ? 1 : 0;
    for (const Slice& slice : held) {
      const bool is_first = Index(slice.node) < static_cast<std::size_t>(of->parted);
      if (counts && of->parted > 0 && of_first != is_first) {
        Violated(fmt::format("job {} is given n{}, which is not in its partition", i + 1,
                             Index(slice.node)));
      }
    }
  }
}

void World::Switch(bool pauses, bool on) {
  Trace(fmt::format("{} is switched {}", pauses ? "the pause" : "the closing", on ? "on" : "off"));
  v1::ClientRequest request;
  if (pauses) {
    request.mutable_switches()->set_paused(on);
  } else {
    request.mutable_switches()->set_closed(on);
  }
  Switched& of = pauses ? paused_ : closed_;
  of.acknowledged.reset();
  const bool alone = of.unanswered++ == 0;
  Call(std::move(request), [&of, on, alone](const v1::ClientReply& reply) {
    --of.unanswered;
    if (reply.has_switches() && alone && of.unanswered == 0) {
      of.acknowledged = on;
    }
  });
}

void World::CheckSwitches() {
  const auto check = [this](Switched& of, bool on, std::int64_t count, const char* what) {
    if (of.on && on && of.count != count) {
      Violated(fmt::format("{}, {} before and {} now", what, of.count, count));
    }
    if (of.acknowledged && *of.acknowledged != on) {
      Violated(fmt::format("a switch that an operator has been told of is not set: {}", what));
    }
    of.on = on;
    of.count = count;
  };
  check(paused_, controller_->engine().is_paused(), controller_->engine().decisions(),
        "decisions are made while they are paused");
  // Both as of one view, which shows nothing before it is on disk.
  const std::shared_ptr<const live::ClusterView> view = controller_->world().view();
  check(closed_, view->switches.closed.on, static_cast<std::int64_t>(view->jobs.size()),
        "jobs are taken while the controller is closed");
  result_.paused_steps += paused_.on ? 1 : 0;
}

// Nobody can tell two such nodes at a time, or three within the time for which attempts that vanish
// count and until it is noticed, from a job that kills its supervisors.
bool World::MayLoseSupervisors(std::size_t node, TimePoint until) {
  constexpr Duration kRemembered = std::chrono::minutes(15);
  lost_supervisors_.resize(sick_.size());
  int lately = 0;
  for (std::size_t i = 0; i < lost_supervisors_.size(); ++i) {
    const std::optional<TimePoint>& other = lost_supervisors_[i];
    if (i != node && other && *other > now_) {
      return false;
    }
    lately += i != node && other && *other + kRemembered > now_ ? 1 : 0;
  }
  if (lately > 1) {
    return false;
  }
  lost_supervisors_[node] = until;
  return true;
}

// One node, or all of them for one and the same reason.
void World::FallSick(std::size_t node) {
  const std::vector<Sickness> kinds{
      {v1::AttemptReport::DISK, "/state/attempts: cannot be made: No space left on device"},
      {v1::AttemptReport::DISK, "/state/logs: cannot be made: Input/output error", 0.5},
      {v1::AttemptReport::SPAWN, "a worker cannot be started: Resource temporarily unavailable"},
      {v1::AttemptReport::DEVICE, "GPU 1: has fallen off the bus"},
      {v1::AttemptReport::SUPERVISOR_LOST, "its supervisor is gone", 0.7},
      {v1::AttemptReport::NO_PROGRAM, "command 'train': No such file or directory"},
      {v1::AttemptReport::NO_FOLDER, "working directory '/data': No such file or directory"}};
  constexpr std::size_t kDoubtful = 2;  // the last ones
  const Sickness errors{v1::AttemptReport::CAUSE_UNSPECIFIED, "", 0.8};
  const bool may_lack = lacks_programs_ && node + 1 == sick_.size();
  Sickness sickness = kinds[Pick(kinds.size() - (may_lack ? 0 : kDoubtful))];
  if (workers_fail_ && Chance(0.3)) {
    sickness = errors;
  }
  sickness.until = now_ + Between(seconds(5), seconds(400));
  const bool all = Chance(0.15) && !may_lack;
  if (sickness.cause == v1::AttemptReport::SUPERVISOR_LOST &&
      (all || !MayLoseSupervisors(node, sickness.until))) {
    sickness.cause = kinds[0].cause;
    sickness.message = kinds[0].message;
  }
  Trace(fmt::format("{} sick: {} until {:.3f}", all ? "all nodes are" : cluster_.nodes[node].name,
                    v1::AttemptReport::Cause_Name(sickness.cause), Seconds(sickness.until)));
  CountStates(all ? FaultKind::kClusterSick : FaultKind::kNodeSick,
              all ? std::nullopt : std::optional(node));
  for (std::size_t i = 0; i < sick_.size(); ++i) {
    if (all || i == node) {
      sick_[i] = sickness;
      ++result_.sick_nodes;
    }
  }
}

// The controller itself drains few.
void World::AskForNodes() {
  v1::ClientRequest request;
  request.mutable_nodes();
  Call(request, [this](const v1::ClientReply& reply) {
    std::set<std::string> drained;
    for (const v1::NodeStatus& node : reply.nodes().nodes()) {
      if (!node.reason().empty()) {
        drained.insert(node.node());
      }
    }
    if (drained.size() > std::max<std::size_t>(1, cluster_.nodes.size() / 5)) {
      Violated(fmt::format("{} nodes are drained by the controller", drained.size()));
    }
    for (const std::string& node : drained) {
      result_.drains += drained_.contains(node) ? 0 : 1;
    }
    drained_ = std::move(drained);
  });
  After(seconds(10), [this] { AskForNodes(); });
}

// What the engine has granted reaches the workers: where all has been quiet for a while, they know
// of the loader workers that they are to have.
void World::CheckLoaders() {
  constexpr Duration kQuiet = seconds(60);
  for (std::size_t n = 0; n < processes_.size() && controller_; ++n) {
    const auto link = connections_.find(links_[n]);
    const bool quiet = link != connections_.end() && !link->second.silent &&
                       link->second.open_there && now_ - link->second.opened > kQuiet &&
                       now_ - last_fault_ > kQuiet && controller_->journal_error().empty();
    for (const auto& [key, attempt] : processes_[n]->attempts()) {
      const auto granted = granted_.find(key);
      const bool settled = granted != granted_.end() && granted->second.last_step == steps_ &&
                           now_ - granted->second.since > kQuiet;
      if (!quiet || !settled || !attempt.alive ||
          attempt.report.state() != v1::AttemptReport::RUNNING) {
        continue;
      }
      for (const Slice& slice : granted->second.grant.slices) {
        if (Index(slice.node) == n && slice.loader_workers != attempt.loader_workers) {
          Violated(fmt::format("job {} on n{} knows of {} loader workers and has {}", key.first, n,
                               attempt.loader_workers, slice.loader_workers));
        }
        result_.loaders_checked += Index(slice.node) == n ? 1 : 0;
      }
    }
  }
  After(seconds(7), [this] { CheckLoaders(); });
}

}  // namespace trainyard::faults
