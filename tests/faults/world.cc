// SPDX-License-Identifier: Apache-2.0
#include "faults/world.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "catalog/catalog.h"
#include "faults/company_policy.h"
#include "profile/execution_model.h"

namespace trainyard::faults {

World::World(const FaultOptions& options)
    : options_(options),
      random_(options.seed),
      disk_(options.bug),
      launches_(*this),
      accounts_(options.bug == PlantedBug::kMischarges) {
  for (int i = 0; i < options.nodes; ++i) {
    cluster_.nodes.push_back({.name = "n" + std::to_string(i), .gpus = options.gpus});
    processes_.push_back(std::make_unique<PretendedProcesses>(*this, i));
    stores_.push_back(std::make_unique<PretendedStore>(*this, i));
    agents_.emplace_back();
    agent_lives_.push_back(0);
    links_.push_back(0);
    timer_numbers_.push_back(0);
    sick_.emplace_back();
    wall_clocks_.push_back(Between(-seconds(2), seconds(2)));
    agent_clocks_.emplace_back(0);
    drained_at_.emplace_back(-std::chrono::hours(1));
  }
  ChoosePolicy();
  shares_gpus_ = parts_.traits().may.share;
  lacks_programs_ = Chance(0.3);
  workers_fail_ = Chance(0.3);
  large_ = Chance(0.2);
  snapshots_ = {.entries = 1 + Pick(30), .interval = seconds(60), .compact = Chance(0.3)};
}

void World::ChoosePolicy() {
  static const Status added =
      catalog::AddComponents(std::array{CompanyEntry(), MoodyCompanyEntry()}, "the simulation");
  CHECK(added.ok());
  static const std::vector<std::string> kPolicies{
      "fifo",
      "srtf",
      "las",
      "tiresias",
      "srsf",
      "gandiva",
      "ftf",
      "drf",
      "tetris",
      "company",
      "company",
      "company",
      "muri-s",
      "chronus:lease=60",
      "antman",
      "torchloader",
      "auto:policies=las+srtf,admissions=all,horizon=600"};
  static const std::vector<std::string> kPlacements{
      "consolidated", "first-fit", "consolidated:locality=1", "first-fit:locality=1"};
  static const std::set<std::string> kNamesGpus{"gandiva", "company", "moody", "antman",
                                                "torchloader"};
  policy_name_ = kPolicies[Pick(kPolicies.size())];
  if (options_.bug == PlantedBug::kIdleVictims) {
    policy_name_ = "moody";
  }
  std::string placement = kPlacements[Pick(kPlacements.size())];
  if (kNamesGpus.contains(policy_name_)) {
    placement = "gandiva";
  }
  Result<scenario::Assembly> parts = scenario::AssembleComponents(
      {.policy = policy_name_, .placement = placement, .admission = "all"}, cluster_, "");
  CHECK(parts.ok());
  parts_ = std::move(parts).value();
  const bool own_model = policy_name_ == "company" || policy_name_ == "moody";
  parts_.rates = own_model ? MakeCompanyModel() : profile::MakeMixedModel(nullptr);
}

// ---------------------------------------------------------------------------------------- clients

void World::Call(v1::ClientRequest request, std::function<void(const v1::ClientReply&)> then) {
  if (Chance(FaultsGoOn() ? loss_ : 0)) {
    return;
  }
  After(Delay(), [this, request = std::move(request), then = std::move(then)] {
    if (controller_) {
      for (std::size_t n = 0; n < cluster_.nodes.size(); ++n) {
        if (request.drain().node() == cluster_.nodes[n].name) {
          drained_at_[n] = now_;
        }
      }
      calls_[++call_numbers_] = then;
      controller_->world().OnCall(call_numbers_, request);
      StepSoon();
    }
  });
}

void World::SubmitJob(std::size_t index) {
  if (clients_[index].number) {
    return;
  }
  v1::ClientRequest request;
  *request.mutable_submit()->mutable_job() = clients_[index].job;
  request.mutable_submit()->set_client_token(
      clients_[index].token +
      (options_.bug == PlantedBug::kNewTokens ? std::to_string(order_) : std::string()));
  request.mutable_submit()->set_wait_for_verdict(index % 3 == 0);
  Call(request, [this, index](const v1::ClientReply& reply) {
    if (reply.error().code() == kResourceExhausted) {
      return;  // the disk is full
    }
    if (reply.has_error()) {
      return Violated("a submission is refused: " + reply.error().message());
    }
    std::optional<std::uint64_t>& number = clients_[index].number;
    if (number && *number != reply.submit().job()) {
      Violated(
          fmt::format("token {} has given jobs {} and {}", index, *number, reply.submit().job()));
    }
    for (std::size_t other = 0; other < clients_.size(); ++other) {
      if (other != index && clients_[other].number == reply.submit().job()) {
        Violated(fmt::format("job {} has been given to two", reply.submit().job()));
      }
    }
    if (!number && Chance(0.2)) {
      After(Between(seconds(1), seconds(300)), [this, index] { ResizeJob(index); });
    }
    number = reply.submit().job();
    if (clients_[index].will_cancel) {
      After(Between(seconds(1), seconds(300)), [this, index] { CancelJob(index); });
    }
  });
  After(Between(seconds(2), seconds(6)),
        [this, index] { SubmitJob(index); });  // until acknowledged
}

void World::ResizeJob(std::size_t index) {
  Trace(fmt::format("job {} is resized", *clients_[index].number));
  v1::ClientRequest request;
  request.mutable_resize()->set_job(*clients_[index].number);
  request.mutable_resize()->set_gpus(1 << Pick(4));
  Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
}

void World::CancelJob(std::size_t index) {
  if (clients_[index].cancel_acknowledged) {
    return;
  }
  clients_[index].cancelled = true;
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(*clients_[index].number);
  Call(request, [this, index](const v1::ClientReply& reply) {
    // Otherwise it had ended before.
    clients_[index].cancel_acknowledged = reply.error().code() != kResourceExhausted;
  });
  After(Between(seconds(2), seconds(6)), [this, index] { CancelJob(index); });
}

// What clients see must never go back.
void World::CheckStatuses() {
  if (!controller_ || !controller_->journal_error().empty()) {
    return;
  }
  for (Client& client : clients_) {
    if (!client.number || *client.number > controller_->world().jobs()) {
      continue;
    }
    const v1::JobState state = controller_->world().StateOf(JobAt(*client.number - 1));
    const bool was_over = client.last >= v1::COMPLETED;
    if (was_over && state != client.last) {
      Violated(fmt::format("job {} was {} and is {}", *client.number,
                           v1::JobState_Name(client.last), v1::JobState_Name(state)));
    }
    if (state == v1::COMPLETED && checkpoints_[*client.number] < client.job.duration_s() - 1e-3) {
      Violated(fmt::format("job {} is completed with {} of {} done", *client.number,
                           checkpoints_[*client.number], client.job.duration_s()));
    }
    if (state == v1::FAILED) {
      Violated(fmt::format("job {} fails for a node's fault: {}", *client.number,
                           controller_->world().StatusOf(JobAt(*client.number - 1)).reason()));
    }
    if (state == v1::REJECTED) {
      Violated(fmt::format("job {} is {}: {}", *client.number, v1::JobState_Name(state),
                           controller_->world().StatusOf(JobAt(*client.number - 1)).reason()));
    }
    if (client.cancel_acknowledged && state < v1::COMPLETED) {
      Violated(fmt::format("job {} goes on after its cancellation", *client.number));
    }
    client.last = state;
  }
}

bool World::AllOver() const {
  return !FaultsGoOn() && controller_ &&
         std::all_of(clients_.begin(), clients_.end(), [](const Client& client) {
           return client.number && client.last >= v1::COMPLETED;
         });
}

void World::CheckEnd() {
  if (controller_) {
    for (const auto& [key, entry] : controller_->engine().measured()->book().entries()) {
      for (const profile::Samples& samples : entry.samples) {
        result_.measurements += static_cast<int>(samples.values().size());
      }
    }
  }
  for (const Client& client : clients_) {
    if (client.last == v1::COMPLETED) {
      ++result_.completed;
    } else if (client.last == v1::CANCELLED) {
      ++result_.cancelled;
    } else {
      Violated(fmt::format("policy {}: job {} has not ended: {}", policy_name_,
                           client.number.value_or(0), v1::JobState_Name(client.last)));
      if (client.number && controller_) {
        Trace(controller_->world().StatusOf(JobAt(*client.number - 1)).ShortDebugString());
      }
    }
    if (client.last == v1::CANCELLED && !client.cancelled) {
      Violated(fmt::format("job {} was never cancelled", client.number.value_or(0)));
    }
  }
}

void World::UndrainAll() {
  loss_ = 0;
  for (const NodeSpec& node : cluster_.nodes) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node(node.name);
    Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
  }
}

// Workers that are no pretence to the controller: their reports correct what it knows of the model.
void World::MakeMeasured(v1::JobRequest& job) {
  constexpr std::array kLaunchers{v1::LaunchSpec::PLAIN, v1::LaunchSpec::TORCHRUN,
                                  v1::LaunchSpec::MPI};
  job.mutable_launch()->set_launcher(kLaunchers.at(Pick(kLaunchers.size())));
  job.set_gpus(Chance(large_ ? 0.8 : 0.2) ? 8 : job.gpus());  // of several nodes
  job.set_model(fmt::format("m{}", Pick(2)));
  job.set_batch_size(32);
  job.set_iterations(job.duration_s());
  job.mutable_launch()->set_workers(Chance(0.5) ? v1::LaunchSpec::PER_NODE
                                                : v1::LaunchSpec::PER_GPU);
  job.mutable_launch()->add_command("train");
}

FaultResult World::Run() {
  for (int i = 0; i < options_.jobs; ++i) {
    Client client{.token = "token-" + std::to_string(i)};
    client.job.set_gpus(1 << Pick(4));
    client.job.set_duration_s(Seconds(Between(seconds(20), seconds(400))));
    client.job.mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
    if (shares_gpus_ && policy_name_ != "company" && policy_name_ != "moody") {
      client.job.mutable_launch()->set_priority(static_cast<int>(Pick(2)));
      client.job.mutable_stages()->set_iteration_s(1);
      for (int stage = 0; stage < 3; ++stage) {
        client.job.mutable_stages()->add_stages_s(static_cast<double>(1 + Pick(9)) / 10);
      }
    }
    if (Chance(large_ ? 0.9 : 0.4) && !shares_gpus_ && policy_name_ != "torchloader") {
      MakeMeasured(client.job);
    }
    if (policy_name_.starts_with("chronus") && Chance(0.5)) {
      client.job.set_deadline_s(client.job.duration_s() * (1 + static_cast<double>(Pick(20))));
    }
    if (Chance(0.5)) {
      const std::size_t set = Pick(6);
      v1::DataSet& data = *client.job.mutable_data_set();
      data.set_name(fmt::format("d{}", set));
      data.set_mib(static_cast<std::int64_t>(20 + 10 * set));
      data.set_home("/store/" + data.name());
    }
    client.will_cancel = Chance(0.1);
    client.job.mutable_launch()->set_max_restarts(workers_fail_ ? 1'000'000 : 0);
    clients_.push_back(std::move(client));
  }
  StartController();
  for (int node = 0; node < options_.nodes; ++node) {
    StartAgent(node);
  }
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    After(Between(Duration{0}, seconds(1500)), [this, i] { SubmitJob(i); });
  }
  PlanFault();
  AskForNodes();
  CheckLoaders();
  CheckStranded();
  for (int again = 0; again < 10; ++again) {
    After(kFaultsUntil + seconds(60 * again + 1), [this] { UndrainAll(); });
  }
  while (!queue_.empty() && result_.violation.empty() && !AllOver() &&
         now_.time_since_epoch() < kLatest) {
    Entry next = queue_.top();
    queue_.pop();
    now_ = next.at;
    next.what();
  }
  if (result_.violation.empty()) {
    CheckEnd();
  }
  for (const std::unique_ptr<PretendedProcesses>& processes : processes_) {
    result_.turns += processes->turns();
  }
  result_.charges = accounts_.charges_compared();
  result_.digest = controller_ ? controller_->digest() : "";
  return result_;
}

}  // namespace trainyard::faults

namespace trainyard {

FaultResult RunFaults(const FaultOptions& options) { return faults::World(options).Run(); }

}  // namespace trainyard
