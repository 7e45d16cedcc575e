// SPDX-License-Identifier: Apache-2.0
// Optimus (EuroSys'18): every job gets the least GPUs that it can use, and what is left goes, step
// by step, to the job whose end comes nearer by most for each GPU more.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policies/elasticflow/elasticflow_planner.h"
#include "policies/optimus/loss_curve.h"
#include "policies/optimus/marginal_gains.h"
#include "policies/policies.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 3> kOptimusOptions{{
    {"interval", OptionSpec::Kind::kNumber, "600",
     "seconds between re-allocations; 0: at every decision. In between jobs only start and end"},
    {"loss", OptionSpec::Kind::kText, "loss",
     "name of the metric from which convergence is estimated where a job reports it; empty: none"},
    {"rest", OptionSpec::Kind::kNumber, "0.01",
     "a job has converged when less than this share of what it can gain is left"},
}};

constexpr double kNever = std::numeric_limits<double>::infinity();

struct OptimusSettings {
  Duration interval{0};
  std::string loss;
  double rest = 0;
};

class OptimusMemory final : public Memory {
 public:
  void Serialize(StateStream& state) override { state(next, demanded_in_vain, curves); }
  TimePoint next = TimePoint::min();  // re-allocation
  bool demanded_in_vain = false;      // no job ran when GPUs were last demanded
  std::map<JobId, LossCurve> curves;  // of live jobs that have reported losses
};

// Adds the losses that running jobs have reported since the last decision to their curves.
void ReadLosses(const Snapshot& snapshot, const std::string& name, OptimusMemory& last) {
  for (const JobId id : snapshot.jobs->live()) {
    if (snapshot.jobs->grant(id).gpus == 0) {
      continue;
    }
    const JobView job = snapshot.jobs->at(id);
    const auto metric = std::find_if(job.reported.begin(), job.reported.end(),
                                     [&name](const Metric& m) { return m.name == name; });
    if (metric != job.reported.end()) {
      const double done = snapshot.rates->TotalWork(*job.spec) - job.work_left.value_or(0);
      last.curves[id].Add(done, metric->value);
    }
  }
}

void RemoveEnded(const JobTable& jobs, std::map<JobId, LossCurve>& curves) {
  if (curves.empty()) {
    return;
  }
  std::map<JobId, LossCurve> live;
  for (const JobId job : jobs.live()) {
    if (const auto curve = curves.find(job); curve != curves.end()) {
      live.insert(curves.extract(curve));
    }
  }
  curves = std::move(live);
}

// When the job would be done on each of its levels, the costs of getting there included.
std::vector<Prospect> ProspectsOf(const JobView& job, double work_left, const Snapshot& snapshot) {
  const int held = job.grant == nullptr ? 0 : job.grant->gpus;
  std::vector<Prospect> prospects;
  for (const Scaling::Level& level :
       ScalingOf(*job.spec, *snapshot.rates, *snapshot.costs).levels) {
    const Duration change = held == level.gpus ? Duration{0}
                            : held > 0         ? level.resize
                            : job.started      ? level.restart
                                               : level.start;
    prospects.push_back(
        {.gpus = level.gpus, .seconds = Seconds(job.debt + change) + work_left / level.rate});
  }
  return prospects;
}

class OptimusDecision {
 public:
  OptimusDecision(const Snapshot& snapshot, bool anew, const OptimusSettings& settings,
                  const OptimusMemory& last)
      : snapshot_(snapshot), anew_(anew), settings_(settings), last_(last) {}

  Proposal Decide() {
    if (!anew_) {
      KeepRunning();
    }
    StartInOrder();
    const std::vector<std::size_t> chosen = ChooseByGain(prospects_, free_);
    for (std::size_t i = 0; i < started_.size(); ++i) {
      Demand(started_[i], prospects_[i][chosen[i]].gpus);
    }
    return std::move(proposal_);
  }

 private:
  // Until the job has converged, and no more than its user has stated.
  [[nodiscard]] double WorkLeft(const JobView& job) const {
    const double left = std::max(0.0, job.work_left.value_or(0));
    const auto curve = last_.curves.find(job.id);
    if (curve == last_.curves.end()) {
      return left;
    }
    const double end = curve->second.ConvergesAt(settings_.rest).value_or(kNever);
    const double done = snapshot_.rates->TotalWork(*job.spec) - left;
    return std::clamp(end - done, 0.0, left);
  }

  void Demand(JobId job, int gpus) {
    proposal_.demands.push_back({.job = job, .gpus = gpus, .may_split = true});
  }

  void KeepRunning() {
    for (const JobId job : snapshot_.jobs->live()) {
      if (const int held = snapshot_.jobs->grant(job).gpus; held > 0) {
        Demand(job, held);
        free_ -= held;
      }
    }
  }

  // In order of arrival, as far as the GPUs go.
  void StartInOrder() {
    for (const JobId job : snapshot_.jobs->live()) {
      if (free_ <= 0) {
        return;
      }
      if (!anew_ && snapshot_.jobs->grant(job).gpus > 0) {
        continue;
      }
      const JobView view = snapshot_.jobs->at(job);
      std::vector<Prospect> prospects = ProspectsOf(view, WorkLeft(view), snapshot_);
      if (!prospects.empty() && prospects.front().gpus <= free_) {
        free_ -= prospects.front().gpus;
        started_.push_back(job);
        prospects_.push_back(std::move(prospects));
      }
    }
  }

  const Snapshot& snapshot_;
  const bool anew_;  // all jobs, not only the ones without GPUs
  const OptimusSettings& settings_;
  const OptimusMemory& last_;
  int free_ = snapshot_.gpus_up;
  std::vector<JobId> started_;
  std::vector<std::vector<Prospect>> prospects_;  // of `started_`
  Proposal proposal_{.walk = {.largest_first = true}};
};

class Optimus final : public Policy {
 public:
  explicit Optimus(OptimusSettings settings) : settings_(std::move(settings)) {}
  [[nodiscard]] std::string_view name() const override { return "optimus"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = true, .gpu_types = TypeSupport::kAlike},
            .may = {.resize = true}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<OptimusMemory>();
  }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    auto& last = static_cast<OptimusMemory&>(*memory);
    const bool anew = snapshot.now >= last.next;
    if (anew) {
      last.next = snapshot.now + settings_.interval;
      RemoveEnded(*snapshot.jobs, last.curves);
    }
    if (!settings_.loss.empty()) {
      ReadLosses(snapshot, settings_.loss, last);
    }
    Proposal proposal = OptimusDecision(snapshot, anew, settings_, last).Decide();
    // Where no job comes to run though GPUs are asked for, time alone changes nothing.
    const bool idle = NobodyRuns(*snapshot.jobs);
    const bool demands = !proposal.demands.empty();
    if (settings_.interval > Duration{0} && demands && !(idle && last.demanded_in_vain)) {
      proposal.wake_at = last.next;
    }
    last.demanded_in_vain = idle && demands;
    return proposal;
  }

 private:
  static bool NobodyRuns(const JobTable& jobs) {
    return std::none_of(jobs.live().begin(), jobs.live().end(),
                        [&jobs](JobId job) { return jobs.grant(job).gpus > 0; });
  }

  const OptimusSettings settings_;
};

Result<Components> MakeOptimus(const Options& options, const ComponentContext& /*context*/) {
  const double interval = options.Number("interval");
  if (interval > 1e9 || (interval > 0 && interval < 1)) {
    return InvalidArgument("policy 'optimus': interval must be 0 or lie between 1 and 1e9 seconds");
  }
  const double rest = options.Number("rest");
  if (!(rest > 0) || rest >= 1) {
    return InvalidArgument("policy 'optimus': rest must lie between 0 and 1");
  }
  return Components{
      .policy = std::make_unique<Optimus>(OptimusSettings{
          .interval = FromSeconds(interval), .loss = options.Text("loss"), .rest = rest})};
}

}  // namespace

ComponentEntry OptimusEntry() {
  return {ComponentKind::kPolicy, "optimus",
          "GPUs where they bring ends nearest, by throughput profiles (needs profiles)",
          kOptimusOptions, MakeOptimus};
}

}  // namespace trainyard::policies
