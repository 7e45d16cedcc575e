// SPDX-License-Identifier: Apache-2.0
#include "live/failures/failure_book.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/earlier.h"
#include "live/notes.h"

namespace trainyard::live {
namespace {

std::string_view NameOf(v1::AttemptReport::Cause cause) {
  switch (cause) {
    case v1::AttemptReport::DISK:
      return "its files cannot be written";
    case v1::AttemptReport::FOLDER:
      return "its folder cannot be entered";
    case v1::AttemptReport::SPAWN:
      return "no process can be started";
    case v1::AttemptReport::DEVICE:
      return "a GPU is faulty";
    case v1::AttemptReport::SUPERVISOR_LOST:
      return "its supervisor is gone";
    case v1::AttemptReport::NO_PROGRAM:
      return "the program is not there";
    case v1::AttemptReport::NO_FOLDER:
      return "the working folder is not there";
    case v1::AttemptReport::DATA:
      return "its data set cannot be fetched";
    case v1::AttemptReport::NO_DATA:
      return "its data set is not there";
    default:
      return "a worker failed";
  }
}

// Before any window.
constexpr TimePoint kLongAgo{Duration{std::numeric_limits<std::int64_t>::min() / 2}};

// So many faults of single nodes, one after the other.
std::int64_t FaultsThatExplain(std::vector<NodeId> vanished_on) {
  const auto end = std::unique(vanished_on.begin(), vanished_on.end());
  return end - vanished_on.begin();
}

}  // namespace

// ------------------------------------------------------------------------------------- one failure

PartFailure FailureOf(const v1::AttemptReport& report) {
  return {.cause = report.cause(),
          .exit_code = report.exit_code(),
          .lost = report.lost(),
          .failed_at = report.failed_at(),
          .message = report.message()};
}

FailureOwner OwnerOf(const PartFailure& failure) {
  switch (failure.cause) {
    case v1::AttemptReport::DISK:
    case v1::AttemptReport::FOLDER:
    case v1::AttemptReport::SPAWN:
    case v1::AttemptReport::DEVICE:
    case v1::AttemptReport::SUPERVISOR_LOST:
    case v1::AttemptReport::DATA:
      return FailureOwner::kNode;
    case v1::AttemptReport::NO_PROGRAM:
    case v1::AttemptReport::NO_FOLDER:
    case v1::AttemptReport::NO_DATA:
      return FailureOwner::kDoubtful;
    default:
      return failure.exit_code != 0 && !failure.lost ? FailureOwner::kJob : FailureOwner::kNobody;
  }
}

std::string VanishedKey(const std::string& user) {
  return std::string(NameOf(v1::AttemptReport::SUPERVISOR_LOST)) +
         (user.empty() ? "" : ", of " + user);
}

std::size_t FirstFailed(std::span<const PartFailure> parts) {
  const auto rank = [](const PartFailure& part) {
    return std::pair(OwnerOf(part) == FailureOwner::kJob, part.failed_at);
  };
  std::size_t first = parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].has_failed() && (first == parts.size() || rank(parts[i]) < rank(parts[first]))) {
      first = i;
    }
  }
  CHECK(first < parts.size());
  return first;
}

std::string ReasonKey(const PartFailure& failure) {
  const std::size_t colon = failure.message.rfind(": ");
  return std::string(NameOf(failure.cause)) +
         (colon == std::string::npos ? "" : failure.message.substr(colon));
}

std::string Describe(const PartFailure& failure) {
  constexpr std::size_t kMost = 200;
  std::string text = failure.message;
  if (text.empty()) {
    text = NameOf(failure.cause);
    if (failure.exit_code != 0) {
      text += " with exit code " + std::to_string(failure.exit_code);
    }
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= kMost) {
    return text;
  }
  std::size_t begin = text.size() - (kMost - 3);
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) {
    ++begin;  // not in the middle of a character
  }
  return "..." + text.substr(begin);
}

FailureBook::FailureBook(const Cluster& cluster, FailureRules rules)
    : cluster_(cluster), rules_(rules), nodes_(cluster.nodes.size()) {}

void FailureBook::ListNodes() { nodes_.resize(cluster_.nodes.size()); }

// ------------------------------------------------------------------------------------------ facts

std::vector<JobId> FailureBook::JobsWithRecord() const {
  std::vector<JobId> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) {
    jobs.push_back(id);
  }
  return jobs;
}

void FailureBook::Take(const model::Event& event) {
  const bool knew_jobs = !jobs_.empty();
  switch (event.kind()) {
    case model::EventKind::kNoted:
      if (const std::optional<FailureNote> note = NoteAs<FailureNote>(event);
          note && IsHere(*note)) {
        TakeNote(*note, event.at);
        CountDoubts();
      }
      break;
    case model::EventKind::kBarred:
      TakeBarred(event);
      break;
    case model::EventKind::kNodeUndrained:
      Clear(event.node());
      nodes_[Index(event.node())] = {};
      CountDoubts();
      break;
    case model::EventKind::kEnded:
    case model::EventKind::kFailed:
    case model::EventKind::kCancelled:
      model::ForEachJob(event, [this](const model::Event& one) { jobs_.erase(one.job()); });
      break;
    default:
      break;
  }
  changes_ += knew_jobs || !jobs_.empty() ? 1 : 0;
}

// Whether the cluster has the nodes that the note names.
bool FailureBook::IsHere(const FailureNote& note) const {
  return Index(note.node) < nodes_.size() &&
         std::all_of(note.nodes.begin(), note.nodes.end(),
                     [this](NodeId node) { return Index(node) < nodes_.size(); });
}

void FailureBook::TakeNote(const FailureNote& note, TimePoint at) {
  switch (note.kind) {
    case FailureNote::Kind::kNodeFailed:
      return TakeNodeFailure(note, at);
    case FailureNote::Kind::kJobFailed:
      return TakeJobFailure(note, at);
    case FailureNote::Kind::kRanWell:
      return TakeRanWell(note);
    case FailureNote::Kind::kAgentLost:
      return CountFailure(note, at);
    case FailureNote::Kind::kRenewed:
      return Clear(note.node);
    case FailureNote::Kind::kDrained:
      nodes_[Index(note.node)].drained_for = note.text;
      return;
  }
}

void FailureBook::TakeNodeFailure(const FailureNote& note, TimePoint at) {
  Job& job = jobs_[note.job];
  job.failed_at = at;
  const bool vanished = note.cause == v1::AttemptReport::SUPERVISOR_LOST;
  // A doubtful one counts when the job has run elsewhere. A job whose supervisors vanish wherever
  // it is says little of the nodes.
  if (OwnerOf({.cause = note.cause}) == FailureOwner::kNode &&
      (!vanished || job.vanished.empty())) {
    CountFailure(note, at);
  }
  job.avoided[note.node] = {
      .cause = note.cause, .key = note.key, .text = note.text, .agent = note.agent};
  if (vanished) {
    job.vanished.push_back({.node = note.node, .at = at});
  }
  if (vanished || !note.avoids) {
    Pause(job, note.text, at);
  }
}

void FailureBook::TakeJobFailure(const FailureNote& note, TimePoint at) {
  Job& job = jobs_[note.job];
  job.failed_at = at;
  if (note.soon) {
    job.left_soon.insert(note.node);
  }
  Pause(job, note.text, at);
}

void FailureBook::TakeRanWell(const FailureNote& note) {
  const auto is_elsewhere = [&note](NodeId node) {
    return std::find(note.nodes.begin(), note.nodes.end(), node) == note.nodes.end();
  };
  if (const auto at = jobs_.find(note.job); at != jobs_.end()) {
    Job& job = at->second;
    job.failures = 0;
    job.vanished.clear();
    for (const NodeId node : job.left_soon) {
      if (is_elsewhere(node)) {
        nodes_[Index(node)].strangers.insert(note.job);
      }
    }
    job.left_soon.clear();
    for (const NodeId node : note.nodes) {  // the job need not avoid these nodes any more
      job.avoided.erase(node);
    }
    for (auto& [node, fault] : job.avoided) {
      if (OwnerOf({.cause = fault.cause}) == FailureOwner::kDoubtful && is_elsewhere(node)) {
        fault.cause = v1::AttemptReport::FOLDER;  // it was the node's fault indeed
        CountFailure({.node = node, .cause = fault.cause, .key = fault.key, .text = fault.text},
                     job.failed_at);
      }
    }
  }
  for (const NodeId node : note.nodes) {
    nodes_[Index(node)].in_a_row = 0;
  }
}

void FailureBook::TakeBarred(const model::Event& event) {
  const auto& barred = event.As<model::fact::Barred>();
  Job& job = jobs_[barred.job];
  job.told = barred.nodes;
  job.held = barred.held;
  job.none_left = barred.held && job.until <= event.at;
  std::erase_if(job.avoided, [&barred](const auto& entry) {
    return !std::binary_search(barred.nodes.begin(), barred.nodes.end(), entry.first);
  });
}

// Jobs may try the node again.
void FailureBook::Clear(NodeId node) {
  for (auto& [id, job] : jobs_) {
    job.avoided.erase(node);
    job.left_soon.erase(node);
  }
}

Duration FailureBook::PauseOf(int failures) const {
  constexpr int kMostDoublings = 30;
  const std::int64_t factor = std::int64_t{1} << std::clamp(failures - 1, 0, kMostDoublings);
  return rules_.longest_pause / factor < rules_.first_pause ? rules_.longest_pause
                                                            : rules_.first_pause * factor;
}

void FailureBook::Pause(Job& job, const std::string& why, TimePoint at) {
  ++job.failures;
  job.until = at + PauseOf(job.failures);
  job.paused_for = why;
}

void FailureBook::CountFailure(const FailureNote& note, TimePoint at) {
  Node& node = nodes_[Index(note.node)];
  // One user's jobs can make all their supervisors vanish, which says nothing of the node.
  const bool same_user = note.cause == v1::AttemptReport::SUPERVISOR_LOST && node.in_a_row > 0 &&
                         node.last_key == note.key && note.key != VanishedKey({});
  node.in_a_row += same_user ? 0 : 1;
  node.last_text = note.text;
  node.last_key = note.key;
  node.failed_at = at;
  // One job can make its supervisors vanish on many nodes, and name a data set that none can fetch.
  if (note.cause != v1::AttemptReport::SUPERVISOR_LOST &&
      (note.cause != v1::AttemptReport::DATA || OthersFailFor(note))) {
    CountReason(note, at);
  }
}

void FailureBook::CountReason(const FailureNote& note, TimePoint at) {
  std::erase_if(reasons_, [&](const Reason& reason) {
    return reason.at + rules_.window < at || (reason.key == note.key && reason.node == note.node);
  });
  reasons_.push_back({.key = note.key, .node = note.node, .at = at});
  if (!IsOfTheCluster(note.key, at)) {
    return;
  }
  if (cluster_until_ + rules_.window < at) {
    cluster_pauses_ = 0;
  }
  if (at >= cluster_until_) {  // once for all attempts that were started together
    cluster_until_ = at + PauseOf(++cluster_pauses_);
  }
  cluster_text_ = note.text;
  for (Node& node : nodes_) {  // it was not theirs
    node.in_a_row = node.last_key == note.key ? 0 : node.in_a_row;
  }
}

bool FailureBook::IsOfTheCluster(const std::string& key, TimePoint now) const {
  const int half = std::max(2, (static_cast<int>(nodes_.size()) + 1) / 2);
  const auto is_recent = [&](const Reason& reason) {
    return reason.key == key && reason.at + rules_.window >= now;
  };
  return !key.empty() && std::count_if(reasons_.begin(), reasons_.end(), is_recent) >=
                             std::min(rules_.same_reason, half);
}

// Whether a job that has no other node left tries the node again by itself.
bool FailureBook::IsSoft(const Fault& fault, TimePoint now) const {
  return fault.cause == v1::AttemptReport::SUPERVISOR_LOST || IsOfTheCluster(fault.key, now);
}

void FailureBook::CountDoubts() {
  nodes_in_doubt_ = static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const Node& node) { return node.in_a_row > 0; }));
}

// ------------------------------------------------------------------------------------ conclusions

std::vector<model::Event> FailureBook::Conclude(TimePoint now, const Surroundings& around) {
  changes_ += jobs_.empty() ? 0 : 1;
  std::vector<model::Event> events;
  ConcludeNodes(now, around, events);
  for (auto& [id, job] : jobs_) {
    ConcludeJob(id, job, now, around, events);
  }
  for (const model::Event& event : events) {
    Take(event);
  }
  return events;
}

void FailureBook::ConcludeNodes(TimePoint now, const Surroundings& around,
                                std::vector<model::Event>& events) {
  const auto most =
      std::max<std::size_t>(1, nodes_.size() / static_cast<std::size_t>(rules_.one_in));
  auto drained = static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const Node& node) { return !node.drained_for.empty(); }));
  for (std::size_t i = 0; i < nodes_.size() && drained < most; ++i) {
    std::string why = WhyDrain(nodes_[i], now);
    if (const auto at = around.unended.find(NodeAt(i));
        why.empty() && at != around.unended.end() && around.available(NodeAt(i))) {
      why = Describe({.message = at->second});
    }
    if (why.empty() || around.drained(NodeAt(i))) {
      continue;
    }
    const FailureNote note{.kind = FailureNote::Kind::kDrained, .node = NodeAt(i), .text = why};
    events.push_back(FactOf(note, now));
    events.push_back({.at = now, .fact = model::fact::NodeDrained{.node = NodeAt(i)}});
    ++drained;
  }
}

// Why the node should be drained; empty: there is no reason to.
std::string FailureBook::WhyDrain(const Node& node, TimePoint now) const {
  if (node.in_a_row >= rules_.in_a_row && !IsOfTheCluster(node.last_key, now)) {
    return std::to_string(node.in_a_row) + " failures in a row, the last: " + node.last_text;
  }
  if (static_cast<int>(node.strangers.size()) >= rules_.strangers) {
    return std::to_string(node.strangers.size()) +
           " jobs failed soon after their start here and ran on other nodes";
  }
  return {};
}

void FailureBook::ConcludeJob(JobId id, Job& job, TimePoint now, const Surroundings& around,
                              std::vector<model::Event>& events) {
  bool tries_again = false;
  if (!HasRoom(id, job, around)) {
    tries_again = std::erase_if(job.avoided,
                                [&](const auto& entry) { return IsSoft(entry.second, now); }) > 0;
  }
  const bool paused = job.until > now;
  // Where the policy does not keep it away, a job may well run on a node that it avoids.
  const bool none_left = !paused && !around.runs(id) && !HasRoom(id, job, around);
  std::vector<NodeId> barred;
  for (const auto& [node, fault] : job.avoided) {
    barred.push_back(node);
  }
  // All that changes is a fact, so that a replay knows of it.
  if (tries_again || barred != job.told || (paused || none_left) != job.held ||
      none_left != job.none_left) {
    events.push_back({.at = now,
                      .fact = model::fact::Barred{
                          .job = id, .nodes = std::move(barred), .held = paused || none_left}});
  }
}

// Whether the nodes that the job does not avoid can hold it. True if it avoids none.
bool FailureBook::HasRoom(JobId id, const Job& job, const Surroundings& around) const {
  if (job.avoided.empty()) {
    return true;
  }
  const int wanted = around.least_gpus(id);
  int gpus = 0;
  for (std::size_t i = 0; i < nodes_.size() && gpus < wanted; ++i) {
    const NodeId node = NodeAt(i);
    if (!job.avoided.contains(node) && around.available(node) && around.accepts(id, node)) {
      gpus += cluster_.nodes[i].gpus;
    }
  }
  return gpus >= wanted;
}

std::optional<TimePoint> FailureBook::next_timer() const {
  std::optional<TimePoint> next;
  for (const auto& [id, job] : jobs_) {
    if (job.held && !job.none_left) {
      next = base::Earlier(next, job.until);
    }
  }
  return next;
}

// -------------------------------------------------------------------------------------- questions

bool FailureBook::NodesAgree(JobId id, NodeId node, v1::AttemptReport::Cause cause,
                             int eligible) const {
  constexpr int kEnough = 2;
  int agreed = 1;
  if (const auto at = jobs_.find(id); at != jobs_.end()) {
    for (const auto& [other, fault] : at->second.avoided) {
      agreed += other != node && fault.cause == cause ? 1 : 0;
    }
  }
  return agreed >= std::min(kEnough, eligible);
}

// Whether another job avoids a node for the same reason.
bool FailureBook::OthersFailFor(const FailureNote& note) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&note](const auto& entry) {
    const auto& [id, job] = entry;
    return id != note.job && std::any_of(job.avoided.begin(), job.avoided.end(),
                                         [&](const auto& at) { return at.second.key == note.key; });
  });
}

bool FailureBook::IsOfOneJob(const FailureNote& note, int eligible) const {
  constexpr int kEnough = 3;
  const auto job = jobs_.find(note.job);
  if (note.cause != v1::AttemptReport::DATA || OthersFailFor(note)) {
    return false;
  }
  int agreed = 1;
  if (job != jobs_.end()) {
    for (const auto& [node, fault] : job->second.avoided) {
      agreed += node != note.node && fault.key == note.key ? 1 : 0;
    }
  }
  return agreed >= std::min(kEnough, eligible);
}

// On which nodes, in their order; those of the last window.
std::vector<NodeId> FailureBook::VanishedInARow(const Vanishing& last) const {
  std::vector<NodeId> nodes;
  if (const auto job = jobs_.find(last.job); job != jobs_.end()) {
    for (const Vanished& vanished : job->second.vanished) {
      if (vanished.at + rules_.window >= last.at) {
        nodes.push_back(vanished.node);
      }
    }
  }
  nodes.push_back(last.node);
  return nodes;
}

int FailureBook::VanishesTooOften(const Vanishing& vanishing, int eligible,
                                  const UserOf& user_of) const {
  constexpr int kNodes = 2;
  constexpr std::size_t kDifferentNodes = 3;
  constexpr int kFaults = 3;
  const std::vector<NodeId> row = VanishedInARow(vanishing);
  if (static_cast<int>(row.size()) < rules_.most_vanished) {
    return 0;
  }
  std::map<NodeId, int> on;
  for (const NodeId node : row) {
    ++on[node];
  }
  const std::string user = user_of(vanishing.job);
  // A node where supervisors of other users' jobs vanish, too, and nothing has run well since.
  const auto is_suspect = [&](const auto& suspect) {
    return nodes_[Index(suspect.first)].in_a_row > 0 &&
           std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
             return entry.first != vanishing.job &&
                    std::any_of(entry.second.vanished.begin(), entry.second.vanished.end(),
                                [&](const Vanished& at) { return at.node == suspect.first; }) &&
                    (user.empty() || user_of(entry.first) != user);
           });
  };
  const auto often =
      std::count_if(on.begin(), on.end(), [](const auto& count) { return count.second > 1; });
  const bool on_several =
      (often >= kNodes || on.size() >= kDifferentNodes) && FaultsThatExplain(row) >= kFaults;
  const bool too_often =
      (on_several || eligible < kNodes) && std::none_of(on.begin(), on.end(), is_suspect);
  return too_often ? static_cast<int>(row.size()) : 0;
}

bool FailureBook::WantsToKnow(JobId id, const std::vector<NodeId>& nodes, TimePoint opened) const {
  if (const auto at = jobs_.find(id); at != jobs_.end() && at->second.failed_at <= opened) {
    const Job& job = at->second;
    const auto is_doubtful = [](const auto& entry) {
      return OwnerOf({.cause = entry.second.cause}) == FailureOwner::kDoubtful;
    };
    if (job.failures > 0 || !job.vanished.empty() || !job.left_soon.empty() ||
        std::any_of(job.avoided.begin(), job.avoided.end(), is_doubtful)) {
      return true;
    }
  }
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    return nodes_[Index(node)].in_a_row > 0 && nodes_[Index(node)].failed_at <= opened;
  });
}

bool FailureBook::IsAvoidedSince(NodeId node, const std::string& agent) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    const auto at = entry.second.avoided.find(node);
    return at != entry.second.avoided.end() && at->second.agent != agent;
  });
}

bool FailureBook::HasRecord(NodeId id) const {
  const Node& node = nodes_[Index(id)];
  return node.in_a_row > 0 || !node.strangers.empty() || IsAvoidedSince(id, {});
}

std::optional<TimePoint> FailureBook::starts_from(TimePoint now) const {
  return cluster_until_ > now ? std::optional(cluster_until_) : std::nullopt;
}

std::string FailureBook::WhyAvoids(JobId id) const {
  const auto at = jobs_.find(id);
  std::string text;
  if (at != jobs_.end()) {
    for (const auto& [node, fault] : at->second.avoided) {
      text +=
          (text.empty() ? "avoids " : "; ") + cluster_.nodes[Index(node)].name + ": " + fault.text;
    }
  }
  return text;
}

bool FailureBook::HasNoNodeLeft(JobId id) const {
  const auto at = jobs_.find(id);
  return at != jobs_.end() && at->second.held && at->second.none_left;
}

std::optional<TimePoint> FailureBook::HeldUntil(JobId id) const {
  const auto at = jobs_.find(id);
  return at != jobs_.end() && at->second.held && !at->second.none_left
             ? std::optional(at->second.until)
             : std::nullopt;
}

std::string FailureBook::WhyHeld(JobId id) const {
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || !at->second.held) {
    return {};
  }
  const Job& job = at->second;
  if (job.none_left) {
    return "no node is left for it; it " + WhyAvoids(id) +
           ". It may try a node again after 'undrain NODE' or a restart of its agent";
  }
  return "waits " + std::to_string(PauseOf(job.failures) / std::chrono::seconds(1)) +
         " s after failure " + std::to_string(job.failures) + " in a row: " + job.paused_for;
}

void FailureBook::FormerJob::Serialize(StateStream& state) {
  constexpr int kMost = 100'000;  // of one job: the bytes are not what was written
  std::map<NodeId, int> counts;
  for (const Vanished& one : job.vanished) {
    ++counts[one.node];
  }
  auto all = static_cast<int>(job.vanished.size());
  state(job.avoided, job.left_soon, job.failures, all, counts, job.until, job.paused_for,
        job.failed_at, job.none_left, job.told, job.held);
  if (!state.reading()) {
    return;
  }
  for (const auto& [node, count] : counts) {
    all -= count;
    if (count < 0 || count > kMost) {
      return state.Fail();
    }
    job.vanished.insert(job.vanished.end(), static_cast<std::size_t>(count),
                        {.node = node, .at = kLongAgo});
  }
  if (all != 0) {
    state.Fail();
  }
}

void FailureBook::Serialize(StateStream& state, bool former) {
  if (state.Size(nodes_.size()) != nodes_.size()) {
    return state.Fail();
  }
  for (Node& node : nodes_) {
    state(node);
  }
  if (former) {
    std::map<JobId, FormerJob> jobs;
    for (const auto& [id, job] : jobs_) {
      jobs[id].job = job;
    }
    state(jobs);
    for (auto& [id, read] : jobs) {
      jobs_[id] = std::move(read.job);
    }
  } else {
    state(jobs_);
  }
  state(reasons_, cluster_text_, cluster_pauses_, cluster_until_);
  CountDoubts();
}

}  // namespace trainyard::live
