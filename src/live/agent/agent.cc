// SPDX-License-Identifier: Apache-2.0
#include "live/agent/agent.h"

#include <algorithm>

#include "live/live_options.h"
#include "service/call_error.h"

namespace trainyard::live {

Agent::Agent(v1::Hello node, supervisor::Processes& processes,
             std::function<void(v1::AgentMessage)> send, supervisor::DataStore* store)
    : node_(std::move(node)),
      processes_(processes),
      send_(std::move(send)),
      data_(node_.data().cache_mib(), store) {
  node_.set_protocol(1);
}

void Agent::Begin() {
  data_.Begin();
  for (v1::AttemptReport& report : processes_.Recover()) {
    if (report.state() != v1::AttemptReport::EXITED) {
      data_.Use(supervisor::KeyOf(report.id()), report.data_set());
    }
    report.clear_data_set();
    attempts_[supervisor::KeyOf(report.id())] = std::move(report);
  }
}

void Agent::OnConnected(TimePoint now) {
  connected_ = true;
  (void)RefreshData();
  v1::AgentMessage message;
  *message.mutable_hello() = node_;
  // All attempts are in one message, which may not be too large: their steps come behind it.
  for (const auto& [key, report] : attempts_) {
    v1::AttemptReport& brief = *message.mutable_hello()->add_attempts();
    brief = report;
    brief.clear_steps();
  }
  sent_.clear();
  sent_[0] = now;  // the hello counts as a heartbeat, which Welcome answers
  send_(std::move(message));
  for (const auto& [key, report] : attempts_) {
    if (!report.steps().empty()) {
      v1::AgentMessage whole;
      *whole.mutable_attempt() = report;
      send_(std::move(whole));
    }
  }
}

void Agent::OnDisconnected() {
  connected_ = false;
  next_beat_ = kEndOfTime;
  sent_.clear();
}

void Agent::OnMessage(const v1::ControllerMessage& message, TimePoint now) {
  if (message.epoch() < epoch_) {
    return;  // from a controller that has been replaced
  }
  epoch_ = message.epoch();
  switch (message.kind_case()) {
    case v1::ControllerMessage::kWelcome:
      heartbeat_ = FromMilliseconds(message.welcome().heartbeat());
      lease_ = FromMilliseconds(message.welcome().lease());
      grace_ = FromMilliseconds(message.welcome().grace());
      next_beat_ = now + heartbeat_;
      if (const auto hello = sent_.find(0); hello != sent_.end()) {
        RenewLease(hello->second, now);
        sent_.erase(hello);
      }
      return;
    case v1::ControllerMessage::kHeartbeat:
      if (const auto beat = sent_.find(message.heartbeat().number()); beat != sent_.end()) {
        RenewLease(beat->second, now);
        sent_.erase(sent_.begin(), std::next(beat));
      }
      return;
    case v1::ControllerMessage::kFetch:
      return Fetch(message.fetch());
    case v1::ControllerMessage::kStart:
      return Start(message.start());
    case v1::ControllerMessage::kStop:
      return Stop(message.stop().id(), FromMilliseconds(message.stop().grace()));
    case v1::ControllerMessage::kTune:
      return Tune(message.tune());
    case v1::ControllerMessage::kForget:
      return Forget(message.forget().id());
    case v1::ControllerMessage::kReadLog:
      return ReadLog(message.read_log());
    case v1::ControllerMessage::kAttach:
      return Attach(message.attach());
    case v1::ControllerMessage::kSignal:
      return processes_.Signal(message.signal().id(), message.signal().signal());
    case v1::ControllerMessage::kRefusal:
      refusal_ = message.refusal().message();
      return;
    case v1::ControllerMessage::KIND_NOT_SET:
      return;
  }
}

void Agent::OnTime(TimePoint now) {
  if (connected_ && next_beat_ <= now) {
    next_beat_ = now + heartbeat_;
    sent_[++beats_] = now;
    v1::AgentMessage message;
    message.mutable_heartbeat()->set_number(beats_);
    send_(std::move(message));
    RepeatEnds();
  }
}

// The controller heard from this node when `sent` was, or later: it allows that much at least.
void Agent::RenewLease(TimePoint sent, TimePoint now) {
  processes_.SetLease(sent + lease_ - now, grace_);
}

std::optional<TimePoint> Agent::next_timer() const {
  return connected_ && next_beat_ != kEndOfTime ? std::optional(next_beat_) : std::nullopt;
}

// The controller has checked all of this; the agent checks it again.
Status Agent::CheckStart(const v1::StartAttempt& start) const {
  if (IsForgotten(start.id())) {
    return Failed("an old order");
  }
  for (const auto& [key, report] : attempts_) {
    if (report.state() == v1::AttemptReport::EXITED || supervisor::IsBeforeStart(report)) {
      continue;
    }
    if (key.first == start.id().job()) {
      return Failed("attempt " + std::to_string(key.second) + " of the job has not gone");
    }
    if (MayShare(start.id(), key)) {
      continue;
    }
    for (const int gpu : start.gpus()) {
      if (std::find(report.gpus().begin(), report.gpus().end(), gpu) != report.gpus().end()) {
        return Failed("GPU " + std::to_string(gpu) + " is held by job " +
                      std::to_string(key.first));
      }
    }
  }
  return {};
}

// Without a launcher all run as one user: only whose jobs these are. What is emulated runs nothing.
bool Agent::MayRun(const v1::StartAttempt& start) const {
  return start.launch().workers() == v1::LaunchSpec::EMULATED || start.user().empty() ||
         node_.user().empty() || start.user() == node_.user();
}

// The later order names the earlier attempt, whichever comes first.
bool Agent::MayShare(const v1::AttemptId& id, const supervisor::AttemptKey& other) const {
  const supervisor::AttemptKey key = supervisor::KeyOf(id);
  const auto names = [this](const supervisor::AttemptKey& one,
                            const supervisor::AttemptKey& another) {
    const auto known = beside_.find(one);
    return known != beside_.end() && known->second.contains(another);
  };
  return names(key, other) || names(other, key);
}

void Agent::Fetch(const v1::FetchData& fetch) {
  const supervisor::AttemptKey key = supervisor::KeyOf(fetch.id());
  if (const auto known = attempts_.find(key); known != attempts_.end()) {
    return Report(known->second);
  }
  if (IsForgotten(fetch.id())) {
    return ReportGone(fetch.id(), "an old order");
  }
  v1::AttemptReport& report = attempts_[key];
  *report.mutable_id() = fetch.id();
  const DataCache::Place place = data_.Want(key, fetch.data_set());
  report.set_state(place == DataCache::Place::kFetching ? v1::AttemptReport::FETCHING
                                                        : v1::AttemptReport::READY);
  Report(report);
  TellData();  // others may have gone for it
}

void Agent::TakeFetches() {
  for (const DataCache::Change& change : data_.TakeChanges()) {
    const auto known = attempts_.find(change.attempt);
    if (known == attempts_.end() || known->second.state() != v1::AttemptReport::FETCHING) {
      continue;
    }
    v1::AttemptReport& report = known->second;
    report.set_fetched(change.fetched);
    if (!change.error.empty()) {
      constexpr int kNotStarted = 126;
      report.set_state(v1::AttemptReport::EXITED);
      report.set_exit_code(kNotStarted);
      report.set_cause(change.cause);
      report.set_message("data set '" + change.name + "' cannot be fetched onto " + node_.node() +
                         ": " + change.error);
    } else if (change.is_here) {
      report.set_state(v1::AttemptReport::READY);
    }
    Report(report);
  }
  TellData();
}

// Whether other copies are here than were told last; the node's description has them now.
bool Agent::RefreshData() {
  v1::DataReport& data = *node_.mutable_data();
  const std::vector<v1::DataSet> held = data_.held();
  const bool same =
      std::equal(held.begin(), held.end(), data.held().begin(), data.held().end(),
                 [](const v1::DataSet& a, const v1::DataSet& b) {
                   return a.name() == b.name() && a.mib() == b.mib() && a.home() == b.home();
                 });
  if (same) {
    return false;
  }
  data.set_number(data.number() + 1);
  data.mutable_held()->Assign(held.begin(), held.end());
  return true;
}

void Agent::TellData() {
  if (RefreshData()) {
    v1::AgentMessage message;
    *message.mutable_data() = node_.data();
    send_(std::move(message));
  }
}

void Agent::Start(const v1::StartAttempt& start) {
  const supervisor::AttemptKey key = supervisor::KeyOf(start.id());
  if (const auto known = attempts_.find(key);
      known != attempts_.end() && !supervisor::IsBeforeStart(known->second)) {
    return Report(known->second);
  }
  for (const v1::AttemptId& other : start.beside()) {
    beside_[key].insert(supervisor::KeyOf(other));
  }
  if (const Status status = CheckStart(start); !status.ok()) {
    return ReportGone(start.id(), status.error().message);
  }
  v1::AttemptReport& report = attempts_[key];
  *report.mutable_id() = start.id();
  *report.mutable_gpus() = start.gpus();
  const auto refuse = [this, &report](v1::AttemptReport::Cause cause, std::string why) {
    constexpr int kNotStarted = 126;
    report.set_state(v1::AttemptReport::EXITED);
    report.set_exit_code(kNotStarted);
    report.set_cause(cause);
    report.set_message("the agent of " + node_.node() + " " + std::move(why));
    Report(report);
  };
  if (!MayRun(start)) {
    // The job's fault, if other nodes say the same: they could run other users' jobs.
    return refuse(
        v1::AttemptReport::NO_PROGRAM,
        "has no launcher, and so runs jobs of " + node_.user() + " alone, not of " + start.user());
  }
  if (node_.isolates() && start.launch().has_container()) {
    return refuse(v1::AttemptReport::NO_PROGRAM,
                  "starts jobs by trainyard-launcher, without the rights that podman needs: it "
                  "runs no containers");
  }
  report.set_state(v1::AttemptReport::RUNNING);
  v1::StartAttempt with_data = start;
  with_data.set_data_folder(start.has_data_set() ? data_.FolderOf(start.data_set()) : "");
  if (!with_data.data_folder().empty()) {
    data_.Use(key, start.data_set().name());
  }
  processes_.Start(with_data);
  OnReports();
}

void Agent::Stop(const v1::AttemptId& id, Duration grace) {
  const auto known = attempts_.find(supervisor::KeyOf(id));
  if (known == attempts_.end()) {
    return ReportGone(id, {});  // the order to start it, should it come now, is void
  }
  if (known->second.state() == v1::AttemptReport::EXITED) {
    return Report(known->second);
  }
  if (supervisor::IsBeforeStart(known->second)) {
    return ReportGone(id, {});
  }
  known->second.set_state(v1::AttemptReport::STOPPING);
  processes_.Stop(id, grace);
}

void Agent::Tune(const v1::TuneAttempt& tune) {
  const supervisor::AttemptKey key = supervisor::KeyOf(tune.id());
  const auto known = attempts_.find(key);
  if (known == attempts_.end() || known->second.state() == v1::AttemptReport::EXITED) {
    return;
  }
  const auto [last, first] = tuned_.emplace(key, tune.order());
  if (first || last->second < tune.order()) {
    last->second = tune.order();
    processes_.Tune(tune);
  }
}

void Agent::Forget(const v1::AttemptId& id) {
  const auto known = attempts_.find(supervisor::KeyOf(id));
  if (known != attempts_.end() && known->second.state() == v1::AttemptReport::EXITED) {
    beside_.erase(known->first);
    tuned_.erase(known->first);
    attempts_.erase(known);
    processes_.Forget(id);
    std::uint32_t& last = forgotten_[id.job()];
    last = std::max(last, id.attempt());
  }
}

void Agent::ReadLog(const v1::ReadLog& request) {
  v1::AgentMessage message;
  v1::LogChunk& chunk = *message.mutable_log();
  chunk.set_call(request.call());
  Result<v1::LogsReply> reply =
      processes_.ReadLog(request.id(), request.request().rank(), request.request().offset());
  if (reply.ok()) {
    *chunk.mutable_reply() = std::move(reply).value();
    chunk.mutable_reply()->set_attempt(request.id().attempt());
  } else {
    *chunk.mutable_error() = service::MessageOf({ErrorCode::kNotFound, reply.error().message});
  }
  send_(std::move(message));
}

void Agent::Attach(const v1::AttachOrder& order) {
  const auto known = attempts_.find(supervisor::KeyOf(order.id()));
  const bool lives = known != attempts_.end() &&
                     known->second.state() != v1::AttemptReport::EXITED &&
                     !supervisor::IsBeforeStart(known->second);
  if (lives && processes_.Attach(order)) {
    return;
  }
  v1::AgentMessage message;
  v1::AttachAnswer& answer = *message.mutable_attach();
  answer.set_call(order.call());
  answer.set_epoch(order.epoch());
  if (lives) {
    *answer.mutable_error() = service::MessageOf(
        {ErrorCode::kUnavailable, "job " + std::to_string(order.id().job()) +
                                      " has no process yet that one could attach to"});
  } else {
    answer.mutable_reply()->set_attempt(order.id().attempt());
    answer.mutable_reply()->set_gone(true);
  }
  send_(std::move(message));
}

void Agent::OnReports() {
  TakeFetches();
  for (v1::AttachAnswer& answer : processes_.TakeAnswers()) {
    v1::AgentMessage message;
    *message.mutable_attach() = std::move(answer);
    send_(std::move(message));
  }
  for (const v1::AttemptReport& report : processes_.TakeReports()) {
    const auto known = attempts_.find(supervisor::KeyOf(report.id()));
    if (known == attempts_.end()) {
      continue;
    }
    known->second = report;
    if (report.state() == v1::AttemptReport::EXITED) {
      data_.Release(known->first);
    }
    Report(report);
  }
}

void Agent::Report(const v1::AttemptReport& report) {
  v1::AgentMessage message;
  *message.mutable_attempt() = report;
  send_(std::move(message));
}

// Repeats ends of attempts: the controller may not have received them, or not written them down.
void Agent::RepeatEnds() {
  for (const auto& [key, report] : attempts_) {
    if (report.state() == v1::AttemptReport::EXITED) {
      Report(report);
    }
  }
}

bool Agent::IsForgotten(const v1::AttemptId& id) const {
  const auto last = forgotten_.find(id.job());
  return last != forgotten_.end() && id.attempt() <= last->second;
}

// Reports the attempt as exited, and keeps the report until the controller says to forget it.
void Agent::ReportGone(const v1::AttemptId& id, const std::string& why) {
  data_.Release(supervisor::KeyOf(id));
  v1::AttemptReport report;
  *report.mutable_id() = id;
  report.set_state(v1::AttemptReport::EXITED);
  report.set_lost(true);
  report.set_message(why);
  if (!IsForgotten(id)) {
    attempts_[supervisor::KeyOf(id)] = report;
  }
  Report(report);
}

}  // namespace trainyard::live
