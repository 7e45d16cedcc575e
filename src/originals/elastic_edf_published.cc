// SPDX-License-Identifier: Apache-2.0
// EDF with admission as ElasticFlow's simulator plans it (reference 5.2).
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/rounding.h"
#include "model/job_order.h"
#include "originals/originals.h"
#include "policies/decision_policy.h"
#include "policies/elasticflow/elasticflow_planner.h"
#include "policies/elasticflow/gpu_timeline.h"
#include "trainyard/state.h"

namespace trainyard::originals {
namespace {

struct EdfJob {
  JobId id{};
  TimePoint deadline = kEndOfTime;
  double work_left = 0;
  std::vector<int> levels;  // ascending, all that the profile has
  std::vector<double> rates;
  std::size_t most = 0;  // the level that it takes where it can
  bool started = false;
  bool started_now = false;
  int gpus = 0;
  TimePoint end{};
  bool end_moves = false;
};

// Free GPUs over time as one layout leaves them, job after job.
class Layout {
 public:
  Layout(TimePoint now, int gpus, Duration slot)
      : now_(now), gpus_(gpus), slot_(slot), free_{{now, gpus}} {}

  struct Laid {
    int gpus = 0;  // now
    TimePoint end{};
    bool in_time = true;
  };

  Laid Add(const EdfJob& job) {
    Laid laid;
    double left = job.work_left;
    for (std::size_t i = 0;; ++i) {
      const bool last = i + 1 == free_.size();
      const TimePoint at = free_[i].from;
      const std::size_t level = LevelFor(job, last ? job.levels[job.most] : free_[i].gpus);
      if (level == job.levels.size()) {
        continue;  // nothing that the job can use
      }
      const int gpus = job.levels[level];
      laid.gpus = i == 0 ? gpus : laid.gpus;
      const TimePoint end = AtSeconds(std::ceil(Seconds(at) + left / job.rates[level]));
      if (last || free_[i + 1].from >= end) {
        laid.end = end;
        laid.in_time = laid.in_time && end <= job.deadline;
        Finish(i, last, {gpus, level == job.most}, end);
        return laid;
      }
      const TimePoint until = free_[i + 1].from;
      left -= Seconds(until - at) * job.rates[level];
      free_[i].gpus -= gpus;
      laid.in_time = laid.in_time && until <= job.deadline;
    }
  }

 private:
  // The most that the job takes where that is free, else the largest level there is room for.
  static std::size_t LevelFor(const EdfJob& job, int free) {
    if (free >= job.levels[job.most]) {
      return job.most;
    }
    std::size_t level = job.levels.size();
    for (std::size_t i = 0; i < job.levels.size() && job.levels[i] <= free; ++i) {
      level = i;
    }
    return level;
  }

  // The job ends in the interval `i`. Its GPUs come back at the slot after its end with what was
  // free there before, whatever stands at that moment already (published so).
  struct Share {
    int gpus = 0;
    bool most = false;
  };
  void Finish(std::size_t i, bool last, const Share& share, TimePoint end) {
    const TimePoint at = free_[i].from;
    int back = gpus_;
    if (last) {
      free_[i].gpus = gpus_ - share.gpus;
    } else if (at < end || !share.most) {
      back = at < end ? free_[i].gpus : gpus_;
      free_[i].gpus -= share.gpus;
    }
    const auto is_at = [](TimePoint moment) {
      return [moment](const policies::GpuStep& step) { return step.from == moment; };
    };
    if (last || std::none_of(free_.begin(), free_.end(), is_at(end))) {
      const TimePoint aligned = slot_.count() == 0 ? end : base::NextMultiple(now_, slot_, end);
      const auto place = std::lower_bound(
          free_.begin(), free_.end(), aligned,
          [](const policies::GpuStep& step, TimePoint moment) { return step.from < moment; });
      if (place != free_.end() && place->from == aligned) {
        place->gpus = back;
      } else {
        free_.insert(place, {aligned, back});
      }
    }
    const auto merged = std::unique(
        free_.begin(), free_.end(),
        [](const policies::GpuStep& a, const policies::GpuStep& b) { return a.gpus == b.gpus; });
    free_.erase(merged, free_.end());
  }

  const TimePoint now_;
  const int gpus_;
  const Duration slot_;
  std::vector<policies::GpuStep> free_;
};

// The runnable jobs in the order in which the original keeps them.
class RunnableMemory final : public Memory {
 public:
  void Serialize(StateStream& state) override { state(order); }
  std::vector<JobId> order;
};

class ElasticEdfPublishedDecision {
 public:
  ElasticEdfPublishedDecision(Duration slot, const Snapshot& snapshot, RunnableMemory& memory)
      : slot_(slot), snapshot_(snapshot), memory_(memory) {}

  Proposal Take() {
    Collect();
    if (!JudgeArrivals()) {
      std::stable_sort(jobs_.begin(), jobs_.end(), EarlierDeadline);
      Adopt(jobs_, LayOut(jobs_), false);
    }
    return Finish();
  }

 private:
  static bool EarlierDeadline(const EdfJob& a, const EdfJob& b) { return a.deadline < b.deadline; }

  [[nodiscard]] EdfJob Make(JobId id) const {
    const JobView view = snapshot_.jobs->at(id);
    const JobSpec& spec = *view.spec;
    EdfJob job{.id = id,
               .deadline = spec.deadline.value_or(kEndOfTime),
               .work_left = view.work_left.value_or(0),
               .started = view.started};
    const int cap = std::min(policies::PublishedCap(spec), snapshot_.gpus_up);
    for (const int level : snapshot_.rates->Levels(spec)) {
      const double rate = snapshot_.rates->Rate(spec, level);
      if (rate <= 0) {  // outside of the job's range
        continue;
      }
      if (level <= cap) {
        job.most = job.levels.size();
      }
      job.levels.push_back(level);
      job.rates.push_back(rate);
    }
    return job;
  }

  // In the kept order; jobs that were admitted by somebody else come last.
  void Collect() {
    memory_.order = model::InKeptOrder(memory_.order, snapshot_.jobs->live());
    jobs_.reserve(memory_.order.size());
    for (const JobId id : memory_.order) {
      jobs_.push_back(Make(id));
    }
  }

  // By position in `jobs`.
  [[nodiscard]] std::vector<Layout::Laid> LayOut(const std::vector<EdfJob>& jobs) const {
    std::vector<std::size_t> order(jobs.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&jobs](std::size_t a, std::size_t b) {
      return EarlierDeadline(jobs[a], jobs[b]);
    });
    Layout layout(snapshot_.now, snapshot_.gpus_up, slot_);
    std::vector<Layout::Laid> laid(jobs.size());
    for (const std::size_t i : order) {
      laid[i] = layout.Add(jobs[i]);
    }
    return laid;
  }

  // A started job that holds nothing keeps the end it had, unless somebody was admitted.
  static void Adopt(std::vector<EdfJob>& jobs, const std::vector<Layout::Laid>& laid,
                    bool all_ends) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      EdfJob& job = jobs[i];
      job.gpus = laid[i].gpus;
      job.started_now = job.started_now || (!job.started && job.gpus > 0);
      if (job.gpus > 0 || (all_ends && (job.started || job.started_now))) {
        job.end = laid[i].end;
        job.end_moves = true;
      }
    }
  }

  // One arrival after the other; each is admitted if everybody would be in time. True: some were.
  bool JudgeArrivals() {
    bool admitted = false;
    for (const JobId id : snapshot_.unjudged) {
      jobs_.push_back(Make(id));
      const std::vector<Layout::Laid> laid = LayOut(jobs_);
      if (std::all_of(laid.begin(), laid.end(),
                      [](const Layout::Laid& one) { return one.in_time; })) {
        Adopt(jobs_, laid, true);
        admitted = true;
        proposal_.verdicts.push_back({.job = id, .judgement = Judgement::kAdmit});
      } else {
        jobs_.pop_back();
        proposal_.verdicts.push_back(
            {.job = id,
             .judgement = Judgement::kReject,
             .reason = "not everybody could be finished in time, earliest deadline first"});
      }
    }
    return admitted;
  }

  Proposal Finish() {
    memory_.order.clear();
    proposal_.demands.reserve(jobs_.size());
    proposal_.ends.reserve(jobs_.size());
    for (const EdfJob& job : jobs_) {
      memory_.order.push_back(job.id);
      if (job.gpus > 0 || job.started_now) {
        proposal_.demands.push_back({.job = job.id, .gpus = job.gpus});
      }
      if (job.end_moves) {
        proposal_.ends.push_back({.job = job.id, .registered = job.end});
      }
    }
    proposal_.walk = {.keep_running = false};
    return std::move(proposal_);
  }

  const Duration slot_;
  const Snapshot& snapshot_;
  RunnableMemory& memory_;
  std::vector<EdfJob> jobs_;
  Proposal proposal_;
};

constexpr std::array<OptionSpec, 1> kPublishedEdfOptions{{
    {"slot", OptionSpec::Kind::kNumber, "240",
     "seconds: the GPUs of a job come back at a multiple of this after the decision"},
}};

Result<Components> MakeElasticEdfPublished(const Options& options,
                                           const ComponentContext& /*context*/) {
  return policies::PolicyOf<ElasticEdfPublishedDecision, RunnableMemory>(
      "elastic-edf-published",
      {.needs = {.work_left = true, .gpu_types = TypeSupport::kOne},
       .may = {.resize = true, .admit = true, .plan_ends = true}},
      FromSeconds(options.Number("slot")));
}

}  // namespace

ComponentEntry ElasticEdfPublishedEntry() {
  return {ComponentKind::kPolicy,
          "elastic-edf-published",
          "EDF as ElasticFlow's simulator plans it: whole plans, planned ends",
          kPublishedEdfOptions,
          MakeElasticEdfPublished,
          {},
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::originals
