// SPDX-License-Identifier: Apache-2.0
// What clients ask for: jobs, and changes of what becomes of them; and what they look at.
#include <algorithm>
#include <array>

#include "faults/world.h"
#include "model/job_numbers.h"

namespace trainyard::faults {
namespace {

bool IsOver(v1::JobState state) { return state >= v1::COMPLETED; }

// Such a bug is to be seen in what becomes of jobs: an answer would tell at once.
bool ChangesTimes(PlantedBug bug) {
  return bug == PlantedBug::kForgetsBegins || bug == PlantedBug::kForgetsLimits ||
         bug == PlantedBug::kHalvesLimits;
}

}  // namespace

void World::Call(v1::ClientRequest request, std::function<void(const v1::ClientReply&)> then) {
  if (Chance(FaultsGoOn() ? loss_ : 0)) {
    return;
  }
  After(Delay(), [this, request = std::move(request), then = std::move(then)]() mutable {
    if (!controller_) {
      return;
    }
    for (std::size_t n = 0; n < cluster_.nodes.size(); ++n) {
      const auto& nodes = request.drain().nodes();
      if (request.drain().node() == cluster_.nodes[n].name ||
          std::find(nodes.begin(), nodes.end(), cluster_.nodes[n].name) != nodes.end()) {
        drained_at_[n] = now_;
      }
      if (request.has_configure()) {
        drained_at_[n] = now_;
      }
    }
    if (IsSwallowed(request)) {
      return then(AnswerTo(request));
    }
    Garble(request);
    calls_[++call_numbers_] = then;
    controller_->world().OnCall(call_numbers_, request);
    StepSoon();
  });
}

// Until there is an answer other than that the disk is full.
void World::Insist(v1::ClientRequest request, std::function<void(const v1::ClientReply&)> then,
                   std::shared_ptr<bool> done) {
  Call(request, [then, done](const v1::ClientReply& reply) {
    if (!*done && reply.error().code() != kResourceExhausted) {
      *done = true;
      then(reply);
    }
  });
  After(Between(seconds(2), seconds(6)),
        [this, request = std::move(request), then = std::move(then), done] {
          if (!*done) {
            Insist(request, then, done);
          }
        });
}

// --------------------------------------------------------------------------------- planted bugs

// Calls that are answered and not heeded.
bool World::IsSwallowed(const v1::ClientRequest& request) const {
  return (options_.bug == PlantedBug::kForgetsHolds && request.hold().hold()) ||
         (options_.bug == PlantedBug::kForgetsUpdates && request.has_update());
}

v1::ClientReply World::AnswerTo(const v1::ClientRequest& request) const {
  v1::ClientReply reply;
  const bool hold = request.has_hold();
  v1::JobStatus& status =
      hold ? *reply.mutable_hold()->mutable_status() : *reply.mutable_update()->mutable_status();
  status = controller_->world().StatusOf(
      JobAt((hold ? request.hold().job() : request.update().job()) - 1));
  return reply;
}

// What reaches the controller is not what the client has said.
void World::Garble(v1::ClientRequest& request) const {
  if (!request.has_submit() || options_.bug == PlantedBug::kNone) {
    return;
  }
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  switch (options_.bug) {
    case PlantedBug::kForgetsDependencies:
      return job.clear_dependency();
    case PlantedBug::kTurnsDependencies:
      if (const std::size_t at = job.dependency().find("afterany"); at != std::string::npos) {
        job.mutable_dependency()->replace(at, 8, "afternotok");
      }
      return;
    case PlantedBug::kForgetsBegins:
      return job.clear_begin_s();
    case PlantedBug::kForgetsLimits:
      return job.clear_time_s();
    case PlantedBug::kHalvesLimits:
      return job.has_time_s() ? job.set_time_s(job.time_s() / 2) : void();
    case PlantedBug::kForgetsArrayLimits:
      return job.mutable_array()->resize(std::min(job.array().size(), job.array().find('%')));
    case PlantedBug::kLosesTasks:
      if (const std::size_t at = job.array().find('-'); at != std::string::npos) {
        --(*job.mutable_array())[at + 1];
      }
      return;
    default:
      return;
  }
}

// --------------------------------------------------------------------------------------- submit

// What a client will ask for, all but what it waits for.
void World::MakeTerms(Client& client, int most_tasks) {
  Terms& terms = client.terms;
  if (Chance(0.12)) {
    terms.limit_s = Seconds(Between(seconds(30), seconds(500)));
  }
  if (Chance(0.1)) {
    client.job.set_begin_s(Seconds(Between(seconds(1), seconds(600))));
  }
  if (most_tasks > 1 && Chance(0.08)) {
    const int tasks = 2 + static_cast<int>(Pick(static_cast<std::size_t>(most_tasks - 1)));
    const auto first = static_cast<int>(Pick(5));
    client.at_once = Chance(0.6) ? 1 + static_cast<int>(Pick(2)) : 0;
    for (int i = 0; i < tasks; ++i) {
      client.indices.push_back(first + i);
    }
    client.job.set_array(fmt::format("{}-{}", first, first + tasks - 1) +
                         (client.at_once > 0 ? fmt::format("%{}", client.at_once) : ""));
    client.job.set_gpus(1 << Pick(3));
  }
  if (terms.limit_s) {
    client.job.set_time_s(*terms.limit_s);
  }
  terms.priority = client.job.launch().priority();
  client.job.set_user(fmt::format("u{}", Pick(2)));
  if (configurations_ != nullptr && finishes_() % 3 == 0) {
    client.job.set_queue(kFirstNodes);
  }
}

// What it waits for, of the jobs of which clients know by now.
std::vector<Need> World::PickNeeds(std::uint64_t before, std::string& name) {
  constexpr std::array<const char*, 3> kKinds{"afterok", "afterany", "afternotok"};
  std::vector<const Client*> known;
  for (const Client& client : clients_) {
    if (client.number && *client.number < before) {
      known.push_back(&client);
    }
  }
  std::vector<Need> needs;
  for (std::size_t i = 1 + Pick(2); i > 0; --i) {
    if (known.empty() || Chance(0.2)) {
      name = name.empty() ? fmt::format("s{}", Pick(3)) : name;
      needs.push_back({.kind = Need::Kind::kSingleton, .text = "singleton"});
      continue;
    }
    const std::size_t kind = Pick(kKinds.size());
    Need need{.kind = static_cast<Need::Kind>(kind), .text = kKinds.at(kind)};
    for (std::size_t j = 1 + Pick(2); j > 0; --j) {
      const Client& other = *known[Pick(known.size())];
      if (!other.indices.empty() && Chance(0.5)) {
        const std::size_t task = Pick(other.indices.size());
        need.text += fmt::format(":{}_{}", *other.number, other.indices[task]);
        need.jobs.push_back(*other.number + task);
        continue;
      }
      need.text += fmt::format(":{}", *other.number);
      for (std::size_t task = 0; task < other.tasks(); ++task) {
        need.jobs.push_back(*other.number + task);
      }
    }
    needs.push_back(std::move(need));
  }
  return needs;
}

void World::SubmitJob(std::size_t index) {
  Client& client = clients_[index];
  if (client.number) {
    return;
  }
  if (!std::exchange(client.has_asked, true) && Chance(0.2)) {
    std::string name;
    client.terms.needs = PickNeeds(kNoJob, name);
    client.terms.any = client.terms.needs.size() > 1 && Chance(0.5);
    client.job.set_name(name);
    client.job.set_dependency(client.terms.Dependency());
  }
  v1::ClientRequest request;
  *request.mutable_submit()->mutable_job() = client.job;
  request.mutable_submit()->set_client_token(client.token + (options_.bug == PlantedBug::kNewTokens
                                                                 ? std::to_string(order_)
                                                                 : std::string()));
  request.mutable_submit()->set_wait_for_verdict(index % 3 == 0);
  Call(request, [this, index](const v1::ClientReply& reply) {
    if (reply.error().code() == kResourceExhausted) {
      return;  // the disk is full
    }
    if (reply.error().message().starts_with("the controller takes no jobs")) {
      return;  // it is closed
    }
    if (reply.has_error()) {
      return Violated("a submission is refused: " + reply.error().message());
    }
    TakeNumber(index, reply.submit());
  });
  After(Between(seconds(2), seconds(6)),
        [this, index] { SubmitJob(index); });  // until acknowledged
}

void World::TakeNumber(std::size_t index, const v1::SubmitReply& reply) {
  Client& client = clients_[index];
  if (client.number && *client.number != reply.job()) {
    Violated(fmt::format("token {} has given jobs {} and {}", index, *client.number, reply.job()));
  }
  for (std::size_t other = 0; other < clients_.size(); ++other) {
    const Client& of = clients_[other];
    if (other != index && of.number && *of.number < reply.job() + client.tasks() &&
        reply.job() < *of.number + of.tasks()) {
      Violated(fmt::format("job {} has been given to two", reply.job()));
    }
  }
  if (client.number) {
    return;
  }
  client.number = reply.job();
  if (client.job.has_begin_s()) {
    client.terms.begin_at = reply.status().submitted() + client.job.begin_s();
  }
  const std::string name = client.job.name().empty() ? std::to_string(reply.job())
                                                     : client.job.name() + "/" + client.job.user();
  book_.Submitted({.number = reply.job(),
                   .indices = client.indices,
                   .at_once = client.at_once,
                   .name = name,
                   .terms = client.terms});
  const std::uint64_t job = reply.job() + Pick(client.tasks());  // one of its tasks
  if (Chance(0.2)) {
    After(Between(seconds(1), seconds(300)), [this, job] { ResizeJob(job); });
  }
  if (client.will_cancel) {
    client.cancels = job;
    client.cancels_all = !client.indices.empty() && Chance(0.5);
    After(Between(seconds(1), seconds(300)), [this, index] { CancelJob(index); });
  }
  if (Chance(0.3)) {
    After(Between(seconds(1), seconds(200)), [this, job] { ChangeJob(job); });
  }
}

void World::ResizeJob(std::uint64_t job) {
  Trace(fmt::format("job {} is resized", job));
  v1::ClientRequest request;
  request.mutable_resize()->set_job(job);
  request.mutable_resize()->set_gpus(1 << Pick(4));
  Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
}

void World::CancelJob(std::size_t index) {
  if (clients_[index].cancel_acknowledged) {
    return;
  }
  clients_[index].cancelled = true;
  v1::ClientRequest request;
  const Client& client = clients_[index];
  if (client.cancels_all) {
    request.mutable_cancel()->mutable_selection()->add_jobs(
        std::to_string(client.number.value_or(0)));
  } else {
    request.mutable_cancel()->set_job(client.cancels);
  }
  Call(request, [this, index](const v1::ClientReply& reply) {
    // Otherwise it had ended before.
    clients_[index].cancel_acknowledged = reply.error().code() != kResourceExhausted;
  });
  After(Between(seconds(2), seconds(6)), [this, index] { CancelJob(index); });
}

// -------------------------------------------------------------------------------------- changes

// One change after the other, each when nothing of the one before can be under way any more.
void World::ChangeJob(std::uint64_t job) {
  book_.IsSettled(job);
  switch (Pick(4)) {
    case 0:
      return HoldJob(job);
    case 1:
      return RequeueJob(job, Chance(0.5));
    default:
      return UpdateJob(job);
  }
}

void World::ChangeAgain(std::uint64_t job) {
  After(Between(seconds(8), seconds(60)), [this, job] {
    book_.IsSettled(job);
    if (FaultsGoOn() && Chance(0.6)) {
      ChangeJob(job);
    }
  });
}

void World::HoldJob(std::uint64_t job) {
  Trace(fmt::format("job {} is held", job));
  v1::ClientRequest request;
  request.mutable_hold()->set_job(job);
  request.mutable_hold()->set_hold(true);
  book_.AsksHold(job);
  book_.AsksRequeue(job);
  Insist(std::move(request), [this, job](const v1::ClientReply& reply) {
    if (!reply.has_error()) {
      book_.HoldConfirmed(job, reply.hold().status().attempt());
    }
    After(Between(seconds(8), seconds(200)), [this, job] { ReleaseJob(job); });
  });
}

void World::ReleaseJob(std::uint64_t job) {
  Trace(fmt::format("job {} is released", job));
  v1::ClientRequest request;
  request.mutable_hold()->set_job(job);
  book_.AsksHold(job);
  Insist(std::move(request), [this, job](const v1::ClientReply& reply) {
    if (!reply.has_error()) {
      book_.Released(job);
    }
    ChangeAgain(job);
  });
}

void World::RequeueJob(std::uint64_t job, bool hold) {
  Trace(fmt::format("job {} is requeued", job));
  v1::ClientRequest request;
  request.mutable_requeue()->set_job(job);
  request.mutable_requeue()->set_hold(hold);
  book_.AsksRequeue(job);
  if (hold) {
    book_.AsksHold(job);
  }
  Insist(std::move(request), [this, job, hold](const v1::ClientReply& reply) {
    const v1::JobStatus& status = reply.requeue().status();
    if (!reply.has_error() && hold) {
      book_.HoldConfirmed(job, status.attempt());
    } else if (status.state() == v1::WAITING || status.state() == v1::STOPPING) {
      book_.Requeued(job, status.attempt());  // else it has been given GPUs again already
    }
    if (hold) {
      After(Between(seconds(8), seconds(200)), [this, job] { ReleaseJob(job); });
    } else {
      ChangeAgain(job);
    }
  });
}

// Begin and dependency are those of the whole array: its first task stands for it.
void World::UpdateJob(std::uint64_t job) {
  const Client& client = *ClientOf(job);
  const bool may_wait = *client.number == job;
  Terms terms = book_.TermsOf(job);
  v1::ClientRequest request;
  v1::UpdateRequest& update = *request.mutable_update();
  update.set_job(job);
  Changes changes;
  if (Chance(0.5)) {
    update.add_fields("priority");
    terms.priority = static_cast<int>(Pick(5));
    update.mutable_values()->mutable_launch()->set_priority(terms.priority);
  }
  if (Chance(0.3)) {
    update.add_fields("time");
    terms.limit_s =
        Chance(0.8) ? std::optional(Seconds(Between(seconds(30), seconds(500)))) : std::nullopt;
    if (terms.limit_s) {
      update.mutable_values()->set_time_s(*terms.limit_s);
    }
  }
  if (may_wait && Chance(0.3)) {
    update.add_fields("begin");
    changes.begin = true;
    changes.begin_s =
        Chance(0.7) ? std::optional(Seconds(Between(seconds(1), seconds(300)))) : std::nullopt;
    constexpr double kClocks = 65;  // as those of controllers differ
    terms.begin_at = std::nullopt;
    terms.begin_moves = changes.begin_s.has_value();
    if (changes.begin_s) {
      update.mutable_values()->set_begin_s(*changes.begin_s);
      terms.begin_at = Seconds(ControllerTime()) + *changes.begin_s - kClocks;
    }
  }
  if (may_wait && Chance(0.3)) {
    update.add_fields("dependency");
    changes.needs = true;
    std::string name = "-";  // it has one, which is its own
    terms.needs = Chance(0.7) ? PickNeeds(job, name) : std::vector<Need>();
    terms.any = terms.needs.size() > 1 && Chance(0.5);
    update.mutable_values()->set_dependency(terms.Dependency());
  }
  if (update.fields().empty()) {
    return ChangeAgain(job);
  }
  Trace(fmt::format("job {} is updated: {}", job, update.ShortDebugString()));
  ForAllUpdated(job, changes, terms,
                [this](std::uint64_t of, const Terms& to) { book_.Asks(of, to); });
  Insist(std::move(request), [this, job, terms, changes](const v1::ClientReply& reply) mutable {
    if (reply.has_error()) {
      return;  // whether it was heeded before is not known: no more changes
    }
    if (changes.begin_s) {
      const v1::JobStatus& status = reply.update().status();
      terms.begin_at = status.submitted() + status.request().begin_s();
    }
    ForAllUpdated(job, changes, terms,
                  [this](std::uint64_t of, const Terms& to) { book_.Confirmed(of, to); });
    ChangeAgain(job);
  });
}

// The terms that an update of the job gives to each task of its array.
void World::ForAllUpdated(std::uint64_t job, const Changes& changes, const Terms& terms,
                          const std::function<void(std::uint64_t, const Terms&)>& then) {
  const bool all = changes.begin || changes.needs;
  for (std::uint64_t of = job; of < job + (all ? ClientOf(job)->tasks() : 1); ++of) {
    Terms to = of == job ? terms : book_.TermsOf(of);
    to.begin_at = changes.begin ? terms.begin_at : to.begin_at;
    to.begin_moves = changes.begin ? terms.begin_moves : to.begin_moves;
    to.needs = changes.needs ? terms.needs : to.needs;
    to.any = changes.needs ? terms.any : to.any;
    then(of, to);
  }
}

// ------------------------------------------------------------------------------ what they look at

const Client* World::ClientOf(std::uint64_t job) const {
  const auto at = std::find_if(clients_.begin(), clients_.end(), [job](const Client& client) {
    return client.number && *client.number <= job && job < *client.number + client.tasks();
  });
  return at == clients_.end() ? nullptr : &*at;
}

// What clients see must never go back.
void World::CheckStatuses() {
  if (!controller_ || !controller_->journal_error().empty()) {
    return;
  }
  for (Client& client : clients_) {
    for (std::size_t task = 0; client.number && task < client.tasks(); ++task) {
      if (*client.number + task <= controller_->world().jobs()) {
        CheckStatus(client, task);
      }
    }
  }
  std::sort(rejected_.begin(), rejected_.end());  // each by what became of those before
  for (const std::uint64_t job : std::exchange(rejected_, {})) {
    Found(book_.Ended(job, v1::REJECTED));
  }
}

void World::CheckStatus(Client& client, std::size_t task) {
  const std::uint64_t number = *client.number + task;
  const JobId id = JobAt(number - 1);
  const v1::JobState state = controller_->world().StateOf(id);
  const v1::JobState before = std::exchange(client.last[task], state);
  if (IsOver(before) && state != before) {
    Violated(fmt::format("job {} was {} and is {}", number, v1::JobState_Name(before),
                         v1::JobState_Name(state)));
  }
  if (state == v1::COMPLETED && checkpoints_[number] < client.job.duration_s() - 1e-3) {
    Violated(fmt::format("job {} is completed with {} of {} done", number, checkpoints_[number],
                         client.job.duration_s()));
  }
  if (client.cancel_acknowledged && client.Cancels(number) && !IsOver(state)) {
    Violated(fmt::format("job {} goes on after its cancellation", number));
  }
  if (!IsOver(state)) {
    const bool settled = now_ - std::max(controller_since_, full_until_) > seconds(30);
    return settled && (steps_ + number) % 64 == 0 ? Found(book_.Lives(number)) : void();
  }
  if (IsOver(before)) {
    return;
  }
  if (state == v1::REJECTED) {
    rejected_.push_back(number);
  } else {
    Found(book_.Ended(number, state));
  }
  const std::string reason = controller_->world().StatusOf(id).reason();
  if (state == v1::FAILED && reason.find("time limit") != std::string::npos) {
    over_limit_.push_back(number);
  } else if (state == v1::FAILED) {
    Violated(fmt::format("job {} fails for a node's fault: {}", number, reason));
  }
  if (state == v1::REJECTED && reason.find("its dependency") == std::string::npos) {
    Violated(fmt::format("job {} is {}: {}", number, v1::JobState_Name(state), reason));
  }
}

// Of what has been decided and is on disk.
void World::CheckLimits() {
  const TimePoint now = controller_->engine().now();
  for (const std::uint64_t job : std::exchange(over_limit_, {})) {
    Found(book_.EndedAtLimit(job, Seconds(accounts_.HeldBy(JobAt(job - 1), now))));
  }
  if (now_ - std::max(controller_since_, full_until_) < seconds(10)) {
    return;
  }
  for (const auto& [job, held] : accounts_.Holders(now)) {
    Found(book_.Holds(model::JobNumbers::Counted().Of(job), Seconds(held)));
  }
}

// What the controller says of all live jobs is what has been acknowledged.
void World::AskForJobs() {
  if (ChangesTimes(options_.bug)) {
    return;
  }
  v1::ClientRequest request;
  request.mutable_jobs()->set_live_only(true);
  Call(request, [this, versions = book_.versions()](const v1::ClientReply& reply) {
    for (const v1::JobStatus& status : reply.jobs().jobs()) {
      if (const auto known = versions.find(status.job()); known != versions.end()) {
        Found(book_.Says(status, known->second));
      }
    }
  });
  After(seconds(20), [this] { AskForJobs(); });
}

bool World::AllOver() const {
  return !FaultsGoOn() && controller_ &&
         std::all_of(clients_.begin(), clients_.end(), [](const Client& client) {
           return client.number && std::all_of(client.last.begin(), client.last.end(), IsOver);
         });
}

void World::CountEnd(const Client& client, std::size_t task) {
  switch (client.last[task]) {
    case v1::COMPLETED:
      ++result_.completed;
      return;
    case v1::CANCELLED:
      ++result_.cancelled;
      break;
    case v1::FAILED:
      ++result_.over_limit;
      return;
    case v1::REJECTED:
      ++result_.impossible;
      return;
    default:
      break;
  }
  const std::uint64_t number = client.number.value_or(0) + task;
  if (client.last[task] != v1::CANCELLED) {
    Violated(fmt::format("policy {}: job {} has not ended: {}", policy_name_, number,
                         v1::JobState_Name(client.last[task])));
    if (client.number && controller_) {
      Trace(controller_->world().StatusOf(JobAt(number - 1)).ShortDebugString());
    }
  } else if (!client.cancelled || !client.Cancels(number)) {
    Violated(fmt::format("job {} was never cancelled", number));
  }
}

// All that jobs have held, and no more.
void World::CheckUsage() {
  if (!controller_) {
    return;
  }
  v1::ClientRequest request;
  request.mutable_usage();
  const std::shared_ptr<const live::ClusterView> view = controller_->world().view();
  const std::int64_t told =
      live::Statuses(*view, controller_->engine().now()).AnswerTo(request).usage().gpu_micros();
  std::int64_t charged = 0;
  for (std::size_t i = 0; i < controller_->engine().records().size(); ++i) {
    charged += controller_->engine().ProgressOf(JobAt(i), controller_->engine().now()).gpu_micros;
  }
  if (told != charged) {
    Violated(
        fmt::format("usage is {} us of GPUs, and jobs have been charged {} us", told, charged));
  }
}

void World::CheckEnd() {
  CheckUsage();
  if (controller_) {
    for (const auto& [key, entry] : controller_->engine().measured()->book().entries()) {
      for (const profile::Samples& samples : entry.samples) {
        result_.measurements += static_cast<int>(samples.values().size());
      }
    }
  }
  for (const Client& client : clients_) {
    for (std::size_t task = 0; task < client.tasks(); ++task) {
      CountEnd(client, task);
    }
  }
  result_.starts_after_others = book_.starts_after_others();
  result_.answers_compared = book_.answers_compared();
}

}  // namespace trainyard::faults
