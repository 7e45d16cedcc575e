// SPDX-License-Identifier: Apache-2.0
// The guarantees that take more than a look at one message (docs/guarantees.md).
#include <algorithm>

#include "faults/world.h"
#include "model/job_numbers.h"

namespace trainyard::faults {

// Of what has been decided and is on disk: what jobs are charged, and who has lost GPUs for whom.
void World::CheckDecisions() {
  if (!controller_->journal_error().empty()) {
    return;
  }
  for (const Accounts::Step& step : accounts_.Commit()) {
    for (const Accounts::Victim& victim : step.victims) {
      CheckVictim(victim, step);
    }
    for (const auto& [job, node] : step.newcomers) {
      CheckNewcomer(job, node, step.at);
    }
    for (const JobId job : step.beneficiaries) {
      Found(book_.GetsGpus(model::JobNumbers::Counted().Of(job), Seconds(step.at)));
    }
  }
  CheckLimits();
  if (const std::string wrong = accounts_.FindWrongCharge(controller_->engine().records());
      !wrong.empty()) {
    Violated(wrong);
  }
}

// No job comes to a node of which nothing has been heard for longer than two heartbeats and what
// messages and a step take. Not under policies that share GPUs or name them.
void World::CheckNewcomer(JobId job, NodeId node, TimePoint decided) {
  const Duration silent = decided - heard_[Index(node)];
  const May& may = controller_->engine().configuration().traits.may;
  constexpr Duration kLongest = 2 * kHeartbeat + seconds(2);
  // What came while a disk was full is heard after that.
  if (may.share || may.name_gpus || may.admit || now_ < full_until_ + kLongest) {
    return;
  }
  ++result_.newcomers;
  if (silent > kLongest) {
    Violated(fmt::format("policy {}: job {} is given GPUs of n{}, silent for {:.3f} s",
                         policy_name_, model::JobNumbers::Counted().Of(job), Index(node),
                         Seconds(silent)));
  }
}

// Jobs that are on the drained node may run until they end, for some time yet.
bool World::LeavesAlone(const v1::NodeStatus& node) const {
  constexpr double kSettled = 10;
  return node.finishing() &&
         (node.finish_until() == 0 || node.finish_until() - Seconds(now_) > kSettled);
}

// A job that ran on nodes in use, that is not over and of which its user wants nothing else, has
// lost its GPUs: somebody else has got some. That these then start CheckStranded sees. Not under
// policies that choose by the number of GPUs: a gang that they have chosen may then find no place
// together.
void World::CheckVictim(const Accounts::Victim& victim, const Accounts::Step& step) {
  constexpr Duration kSettled = seconds(10);
  const std::uint64_t number = model::JobNumbers::Counted().Of(victim.job);
  const v1::JobStatus status = controller_->world().StatusOf(victim.job);
  const std::vector<v1::NodeStatus> nodes = controller_->world().NodeStatuses();
  const bool ran =
      std::all_of(victim.grant.slices.begin(), victim.grant.slices.end(), [&](const Slice& slice) {
        const v1::NodeStatus& node = nodes[Index(slice.node)];
        const std::optional<TimePoint> calm = CalmSince(Index(slice.node));
        return node.up() && (!node.drained() || LeavesAlone(node)) && calm &&
               now_ - *calm > kSettled && now_ - drained_at_[Index(slice.node)] > kSettled &&
               witness_.IsOn(static_cast<int>(Index(slice.node)), number);
      });
  const bool plans_by_count =
      policy_name_.starts_with("chronus") || policy_name_ == "muri-s" || policy_name_ == "company";
  if (!ran || plans_by_count || book_.MayBeTaken(number) || victim.grant.gpus == 0 ||
      !victim.grant.running || status.request().gpus() != victim.grant.gpus) {
    return;
  }
  const bool finishes =
      std::any_of(victim.grant.slices.begin(), victim.grant.slices.end(),
                  [&](const Slice& slice) { return nodes[Index(slice.node)].drained(); });
  if (finishes && status.state() < v1::COMPLETED) {
    Violated(fmt::format("policy {}: job {} loses its GPUs on a node where it may finish: {}",
                         policy_name_, number, status.ShortDebugString()));
  }
  ++result_.victims;
  const bool for_another = std::any_of(step.beneficiaries.begin(), step.beneficiaries.end(),
                                       [&](JobId job) { return job != victim.job; });
  if (!for_another && status.state() < v1::COMPLETED) {
    Violated(fmt::format("policy {}: job {} loses its GPUs for nobody: {}", policy_name_, number,
                         status.ShortDebugString()));
  }
}

// Within a lease of the start of a controller no node that it began with is taken for dead.
void World::CheckNodesAlive() {
  if (now_ - controller_since_ >= kLease) {
    return;
  }
  const std::vector<v1::NodeStatus> nodes = controller_->world().NodeStatuses();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (alive_at_start_[n] && !nodes[n].up()) {
      Violated(fmt::format("n{} is declared dead {:.3f} s after a restart", n,
                           Seconds(now_ - controller_since_)));
    }
  }
}

// Since when nothing has been wrong with the node, its connection and the controller; none: there
// is something.
std::optional<TimePoint> World::CalmSince(std::size_t node) const {
  const auto link = connections_.find(links_[node]);
  if (!controller_ || !controller_->journal_error().empty() || !agents_[node] ||
      link == connections_.end() || link->second.silent || !link->second.open_there) {
    return std::nullopt;
  }
  TimePoint since = std::max({controller_since_, full_until_, link->second.opened});
  for (const Sickness& sickness : sick_) {  // one on all nodes makes all starts wait
    since = std::max(since, sickness.until);
  }
  return since <= now_ ? std::optional(since) : std::nullopt;
}

bool World::AllNodesServe() const {
  if (!controller_) {
    return false;
  }
  const std::vector<v1::NodeStatus> nodes = controller_->world().NodeStatuses();
  return controller_->engine().cluster().partitions.empty() &&
         std::all_of(nodes.begin(), nodes.end(), [](const v1::NodeStatus& node) {
           return node.up() && !node.drained() && node.gpus() > 0;
         });
}

// The last fault for which the job may wait: where all starts wait, that of any node. Nothing:
// there are some now.
std::optional<TimePoint> LastFaultOf(const v1::JobStatus& job,
                                     std::span<const std::optional<TimePoint>> calm,
                                     TimePoint since) {
  if (!job.reason().starts_with("all starts wait")) {
    return since;
  }
  for (const std::optional<TimePoint>& node : calm) {
    if (!node) {
      return std::nullopt;
    }
    since = std::max(since, *node);
  }
  return since;
}

// A job that has GPUs starts on them; and where nothing runs at all, those that wait get some.
void World::CheckStranded() {
  After(seconds(20), [this] { CheckStranded(); });
  std::vector<std::optional<TimePoint>> calm;
  for (std::size_t n = 0; n < links_.size(); ++n) {
    calm.push_back(CalmSince(n));
  }
  if (!controller_ || !controller_->journal_error().empty()) {
    return;
  }
  if (controller_->engine().is_paused()) {
    stranded_.clear();
    idle_since_ = kEndOfTime;
    return;
  }
  bool waits = false;
  const std::span<const model::JobRecord> records = controller_->engine().records();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint64_t number = model::JobNumbers::Counted().Of(JobAt(i));
    const Grant& grant = records[i].grant;
    waits =
        waits || (records[i].phase.get() == model::JobPhase::kWaiting && !book_.MayBeHeld(number));
    const bool stranded =
        grant.holds() && grant.running &&
        std::all_of(grant.slices.begin(), grant.slices.end(), [&](const Slice& slice) {
          return calm[Index(slice.node)] &&
                 !witness_.IsOn(static_cast<int>(Index(slice.node)), number);
        });
    if (!stranded) {
      stranded_.erase(number);
      continue;
    }
    ++result_.watched;
    TimePoint& since = stranded_.emplace(number, now_).first->second;
    for (const Slice& slice : grant.slices) {
      since = std::max(since, *calm[Index(slice.node)]);
    }
    if (now_ - since <= kStranded) {
      continue;
    }
    const v1::JobStatus status = controller_->world().StatusOf(JobAt(i));
    if (now_ - LastFaultOf(status, calm, since).value_or(now_) > kStranded) {
      Violated(fmt::format("policy {}: job {} is stranded: it has GPUs on idle nodes: {}",
                           policy_name_, number, status.ShortDebugString()));
    }
  }
  const bool all_idle =
      waits && witness_.IsIdle() && !FaultsGoOn() && loss_ == 0 &&
      std::all_of(calm.begin(), calm.end(), [](const auto& since) { return since.has_value(); });
  idle_since_ = all_idle ? std::min(idle_since_, now_) : kEndOfTime;
  if (all_idle && now_ - idle_since_ > kStranded) {
    Violated(
        fmt::format("policy {}: jobs are stranded: they wait, and all nodes idle", policy_name_));
  }
}

// As its request says.
Starter World::StarterOfJob(std::uint64_t number) {
  const auto known = starters_.find(number);
  if (known != starters_.end()) {
    return known->second;
  }
  v1::JobRequest request;
  if (number == 0 || !controller_ || number > controller_->engine().records().size() ||
      !request.ParseFromString(controller_->engine().records()[number - 1].spec->launch)) {
    return Starter::kEmulated;
  }
  return starters_[number] = StarterOf(request.launch());
}

// In which states a fault hits what there is; all that there is, or that is on one node.
void World::CountStates(FaultKind fault, std::optional<std::size_t> node) {
  for (std::size_t n = 0; n < processes_.size(); ++n) {
    for (const auto& [key, attempt] : processes_[n]->attempts()) {
      if (node.value_or(n) != n) {
        continue;
      }
      const bool leaves = attempt.report.state() == v1::AttemptReport::STOPPING;
      result_.coverage.Hit(fault, !attempt.alive ? AttemptState::kGoneHere
                                  : leaves       ? AttemptState::kLeavesHere
                                                 : AttemptState::kRunsHere);
      if (const auto step = launches_.StepOf(static_cast<int>(n), key)) {
        result_.coverage.Hit(fault, *step);
      }
    }
  }
  for (std::size_t i = 0; controller_ && i < controller_->world().jobs(); ++i) {
    const Slices& slices = controller_->engine().records()[i].grant.slices;
    const bool concerned =
        !node || std::any_of(slices.begin(), slices.end(),
                             [&](const Slice& slice) { return Index(slice.node) == *node; });
    const v1::JobState state = controller_->world().StateOf(JobAt(i));
    if (state == v1::STOPPING) {  // it has lost its GPUs, and its node may be any
      result_.coverage.Hit(fault, AttemptState::kStopping);
    } else if (concerned && state >= v1::WAITING && state <= v1::RUNNING) {
      result_.coverage.Hit(fault, static_cast<AttemptState>(state - v1::WAITING));
    }
  }
}

}  // namespace trainyard::faults
