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
      finishes_(static_cast<std::uint32_t>(options.seed) + 1),
      upgrades_(static_cast<std::uint32_t>(options.seed) + 3),
      disk_(options.bug),
      launches_(*this),
      accounts_(options.bug == PlantedBug::kMischarges) {
  for (int i = 0; i < options.nodes; ++i) {
    constexpr int kCpusPerGpu = 4;
    cluster_.nodes.push_back({.name = "n" + std::to_string(i),
                              .gpus = options.gpus,
                              .capacity = {.milli_cpus = 1000 * kCpusPerGpu * options.gpus}});
    processes_.push_back(std::make_unique<PretendedProcesses>(*this, i));
    stores_.push_back(std::make_unique<PretendedStore>(*this, i));
    agents_.emplace_back();
    agent_lives_.push_back(0);
    links_.push_back(0);
    timer_numbers_.push_back(0);
    sick_.emplace_back();
    wall_clocks_.push_back(Between(-seconds(2), seconds(2)));
    heard_.emplace_back();
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
  placement_name_ = placement;
  if (CanChange(policy_name_) && options_.seed % 2 == 0) {
    configurations_ = std::make_unique<FaultConfigurations>(cluster_);
  }
  Result<scenario::Assembly> parts = scenario::AssembleComponents(
      {.policy = policy_name_, .placement = placement, .admission = "all"}, cluster_, "");
  CHECK(parts.ok());
  parts_ = std::move(parts).value();
  const bool own_model = policy_name_ == "company" || policy_name_ == "moody";
  parts_.rates = own_model ? MakeCompanyModel() : profile::MakeMixedModel(nullptr);
}

void World::UndrainAll() {
  loss_ = 0;
  if (configurations_ != nullptr) {
    ChangeConfiguration({.policy = policy_name_, .placement = placement_name_}, true);
  }
  for (const NodeSpec& node : cluster_.nodes) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node(node.name);
    Call(std::move(request), [](const v1::ClientReply& /*reply*/) {});
  }
  if (paused_.on) {
    Switch(true, false);
  }
  if (closed_.on) {
    Switch(false, false);
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

// What any of the nodes can give beside its GPUs.
void World::MakeRequest(v1::JobRequest& job) {
  constexpr std::array kCpus{"1/gpu", "4/gpu", "4", "3/node"};
  job.set_cpus(kCpus.at(Pick(kCpus.size())));
  job.set_exclusive(Chance(0.1));
  if (!job.has_stages() && Chance(0.4)) {
    job.set_gpus(0);
    job.set_cpus(Chance(0.5) ? "4" : "2/node");
  }
}

FaultResult World::Run() {
  for (int jobs = 0; jobs < options_.jobs;) {
    Client client{.token = fmt::format("token-{}", clients_.size())};
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
    if (Chance(large_ ? 0.9 : 0.4) && policy_name_ != "torchloader") {
      MakeMeasured(client.job);
    }
    if (policy_name_.starts_with("chronus") && Chance(0.5)) {
      client.job.set_deadline_s(client.job.duration_s() * (1 + static_cast<double>(Pick(20))));
    }
    if (parts_.bundle().honours_requests() && Chance(0.3)) {
      MakeRequest(client.job);
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
    MakeTerms(client, std::min(6, options_.jobs - jobs));
    client.last.resize(client.tasks());
    jobs += static_cast<int>(client.tasks());
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
  PlanSwitches();
  PlanConfigurations();
  AskForNodes();
  AskForJobs();
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
