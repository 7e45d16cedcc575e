// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "trace/csv_format.h"
#include "trace/generators/mix.h"
#include "trace/generators/random.h"

namespace trainyard::trace {
namespace {

constexpr int kMostJobs = 100'000'000;

// The numbers of the streams. New ones go to the end: others would change the traces of a seed.
enum class Attribute : std::uint8_t {
  kGap,
  kBurst,
  kSize,
  kDuration,
  kFailure,
  kKind,  // deadline or best effort
  kDeadline,
  kUser,
  kModel,
  kBatch,
};

Random StreamOf(const WorkloadOptions& options, Attribute attribute) {
  return Random::Stream(options.seed, static_cast<std::uint64_t>(attribute));
}

// Draws positions in proportion to weights, by one number each.
class Weighted {
 public:
  void Add(double weight) { upto_.push_back((upto_.empty() ? 0 : upto_.back()) + weight); }
  [[nodiscard]] bool empty() const { return upto_.empty(); }
  [[nodiscard]] std::size_t At(double u) const {
    const auto found = std::upper_bound(upto_.begin(), upto_.end() - 1, u * upto_.back());
    return static_cast<std::size_t>(found - upto_.begin());
  }

 private:
  std::vector<double> upto_;
};

// The rows of one model that can be drawn.
struct Model {
  double weight = 1;
  std::vector<const profile::ThroughputRow*> rows;
};

Result<Model> FindModel(const ModelWeight& wanted,
                        std::span<const profile::ThroughputRow> profiles) {
  Model model{.weight = wanted.weight, .rows = {}};
  std::vector<std::string_view> known;
  for (const profile::ThroughputRow& row : profiles) {
    if (known.empty() || known.back() != row.model) {
      known.push_back(row.model);
    }
    if (wanted.name == row.model ||
        wanted.name == fmt::format("{}:{}", row.model, row.batch_size)) {
      model.rows.push_back(&row);
    }
  }
  if (model.rows.empty()) {
    return InvalidArgument(base::UnknownName("model", wanted.name, known));
  }
  return model;
}

// Which models there are to choose from on a number of GPUs.
class ModelChoice {
 public:
  // Errors: see GenerateWorkload.
  [[nodiscard]] static Result<ModelChoice> Of(const WorkloadOptions& options,
                                              std::span<const profile::ThroughputRow> profiles) {
    std::vector<Model> models;
    for (const ModelWeight& wanted : options.models) {
      ASSIGN_OR_RETURN(Model model, FindModel(wanted, profiles));
      models.push_back(std::move(model));
    }
    for (std::size_t i = 0; options.models.empty() && i < profiles.size(); ++i) {
      models.push_back({.weight = 1, .rows = {&profiles[i]}});
    }
    ModelChoice choice;
    for (const JobSizeClass& size : options.sizes) {
      if (!choice.Add(size.gpus, models)) {
        return InvalidArgument(
            fmt::format("no model has a rate on {} GPUs; expected a smaller --largest-job, other "
                        "--gpu-mix or models that run there",
                        size.gpus));
      }
    }
    return choice;
  }

  // The model by `u`, its batch size by `v`.
  [[nodiscard]] const profile::ThroughputRow& At(int gpus, double u, double v) const {
    const Rows& rows = by_gpus_.at(gpus);
    const std::vector<const profile::ThroughputRow*>& of_model = rows.rows[rows.weights.At(u)];
    return *of_model[static_cast<std::size_t>(v * static_cast<double>(of_model.size()))];
  }

 private:
  struct Rows {
    Weighted weights;
    std::vector<std::vector<const profile::ThroughputRow*>> rows;  // of each model, as the weights
  };

  [[nodiscard]] bool Add(int gpus, const std::vector<Model>& models) {
    Rows& rows = by_gpus_[gpus];
    for (const Model& model : models) {
      std::vector<const profile::ThroughputRow*> running;
      std::copy_if(model.rows.begin(), model.rows.end(), std::back_inserter(running),
                   [gpus](const profile::ThroughputRow* row) { return row->Rate(gpus) > 0; });
      if (!running.empty()) {
        rows.weights.Add(model.weight);
        rows.rows.push_back(std::move(running));
      }
    }
    return !rows.weights.empty();
  }

  std::map<int, Rows> by_gpus_;
};

// Sizes above the largest are drawn as the largest below it.
Result<std::vector<JobSizeClass>> CutSizes(const WorkloadOptions& options) {
  std::vector<JobSizeClass> sizes = options.sizes;
  if (options.largest_job > 0 && sizes.front().gpus > options.largest_job) {
    return InvalidArgument(
        fmt::format("all jobs ask for {} GPUs or more; expected a largest job "
                    "of so many",
                    sizes.front().gpus));
  }
  while (options.largest_job > 0 && sizes.back().gpus > options.largest_job) {
    const double share = sizes.back().share;
    sizes.pop_back();
    sizes.back().share += share;
  }
  return sizes;
}

// Everything but the time of submission. Each stream gives every job the same number of draws,
// whatever the options are.
class JobDraws {
 public:
  JobDraws(const WorkloadOptions& options, const ModelChoice& models)
      : options_(options),
        models_(models),
        size_(StreamOf(options, Attribute::kSize)),
        duration_(StreamOf(options, Attribute::kDuration)),
        failure_(StreamOf(options, Attribute::kFailure)),
        kind_(StreamOf(options, Attribute::kKind)),
        deadline_(StreamOf(options, Attribute::kDeadline)),
        user_(StreamOf(options, Attribute::kUser)),
        model_(StreamOf(options, Attribute::kModel)),
        batch_(StreamOf(options, Attribute::kBatch)) {
    for (const JobSizeClass& size : options.sizes) {
      sizes_.Add(size.share);
    }
    for (int user = 1; user <= options.users; ++user) {
      users_.Add(std::pow(user, -options.user_skew));
    }
  }

  // The deadline counts from 0, as the submit is still to come.
  JobSpec Next() {
    const JobSizeClass& size = options_.sizes[sizes_.At(size_.Uniform())];
    const double planned = Planned(size);
    const bool fails = failure_.Uniform() < options_.failure_share;
    const double part = failure_.Uniform();
    const auto seconds =
        static_cast<std::int64_t>(std::max(fails ? std::round(planned * part) : planned, 1.0));
    const double u = model_.Uniform();
    const profile::ThroughputRow& row = models_.At(size.gpus, u, batch_.Uniform());
    JobSpec job{.name = fmt::format("job-{:06}", ++number_),
                .model = row.model,
                .gpus = size.gpus,
                .batch_size = row.batch_size,
                .duration = std::chrono::seconds(seconds),
                .iterations = static_cast<double>(seconds) * row.Rate(size.gpus)};
    SetUser(job);
    SetKind(planned, job);
    return job;
  }

 private:
  double Planned(const JobSizeClass& size) {
    const double drawn = size.median_seconds * std::exp(size.spread * duration_.Normal());
    return std::round(std::clamp(drawn, options_.least_seconds, options_.most_seconds));
  }

  void SetUser(JobSpec& job) {
    const double u = user_.Uniform();
    if (options_.users == 0) {
      return;
    }
    const std::size_t user = users_.At(u);
    job.user = fmt::format("user{:03}", user + 1);
    if (options_.queues > 0) {
      job.queue = fmt::format("vc{:02}", 1 + user % static_cast<std::size_t>(options_.queues));
    }
  }

  void SetKind(double planned, JobSpec& job) {
    const double u = kind_.Uniform();
    const double factor =
        deadline_.Uniform(options_.least_deadline_factor, options_.most_deadline_factor);
    if (u < options_.deadline_share) {
      job.deadline = AtSeconds(std::round(planned * factor));
    }
    job.best_effort = u >= 1 - options_.best_effort_share;
  }

  const WorkloadOptions& options_;
  const ModelChoice& models_;
  Random size_;
  Random duration_;
  Random failure_;
  Random kind_;
  Random deadline_;
  Random user_;
  Random model_;
  Random batch_;
  Weighted sizes_;
  Weighted users_;
  int number_ = 0;
};

double Work(const JobSpec& job) { return Seconds(*job.duration) * job.gpus; }

Error NotTwo() {
  return InvalidArgument(
      "expected two of --jobs, --days and a rate (--load with --cluster-gpus, or --jobs-per-hour); "
      "the third follows");
}

// The jobs without their submits.
Result<std::vector<JobSpec>> DrawJobs(const WorkloadOptions& options, JobDraws& draws) {
  double count = options.jobs;
  if (options.jobs == 0) {
    count = options.load > 0 ? kMostJobs : std::round(options.days * 24 * options.jobs_per_hour);
  }
  if (count > kMostJobs || count < 1) {
    return InvalidArgument(fmt::format("{:.0f} jobs; expected 1 to {}", count, kMostJobs));
  }
  const double wanted = options.jobs == 0 && options.load > 0
                            ? options.load * options.cluster_gpus * options.days * kDaySeconds
                            : HUGE_VAL;  // GPU-seconds
  std::vector<JobSpec> jobs;
  double work = 0;
  while (static_cast<double>(jobs.size()) < count && work < wanted) {
    jobs.push_back(draws.Next());
    work += Work(jobs.back());
  }
  if (work < wanted && wanted < HUGE_VAL) {
    return InvalidArgument(
        fmt::format("more than {} jobs; expected fewer days, a smaller load or "
                    "longer jobs",
                    kMostJobs));
  }
  return jobs;
}

// The time over which the jobs are submitted, in seconds; 0: as long as the gaps make it.
double SpanOf(const WorkloadOptions& options, const std::vector<JobSpec>& jobs) {
  if (options.days > 0) {
    return options.days * kDaySeconds;
  }
  if (options.load <= 0) {
    return 0;
  }
  double work = 0;
  for (const JobSpec& job : jobs) {
    work += Work(job);
  }
  return work / (options.load * options.cluster_gpus);
}

// Exponential gaps at an even rate, and bursts; then stretched by the shape of the week. The gap
// behind the last job counts, so that the work is offered over exactly the span.
void SetSubmits(const WorkloadOptions& options, std::vector<JobSpec>& jobs) {
  Random gap = StreamOf(options, Attribute::kGap);
  Random burst = StreamOf(options, Attribute::kBurst);
  std::vector<double> at;  // in mean gaps
  at.reserve(jobs.size());
  double now = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    at.push_back(now);
    const double next = gap.Exponential() / (1 - options.burst_share);
    now += burst.Uniform() < options.burst_share ? 0 : next;
  }
  const WeekShape week(options.week);
  const double span = SpanOf(options, jobs);
  const double unit = span <= 0 ? 3600 / options.jobs_per_hour
                      : now > 0 ? week.Evened(span) / now
                                : 0;  // one burst
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double submit = std::floor(week.Clock(at[i] * unit));
    jobs[i].submit = AtSeconds(submit);
  }
}

Status CheckAmount(const WorkloadOptions& options) {
  const int given = (options.jobs > 0 ? 1 : 0) + (options.days > 0 ? 1 : 0) +
                    (options.load > 0 ? 1 : 0) + (options.jobs_per_hour > 0 ? 1 : 0);
  return given == 2 && !(options.load > 0 && options.jobs_per_hour > 0) ? Status()
                                                                        : Status(NotTwo());
}

Status CheckTimes(const std::vector<JobSpec>& jobs) {
  for (const JobSpec& job : jobs) {
    const double end = std::max(Seconds(job.submit), job.deadline ? Seconds(*job.deadline) : 0);
    if (end > model::kMostTraceSeconds) {
      return InvalidArgument(
          fmt::format("job '{}' is submitted or due at {:.0f} s; expected at most {:.0f}", job.name,
                      end, model::kMostTraceSeconds));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<JobSpec>> GenerateWorkload(const WorkloadOptions& given,
                                              std::span<const profile::ThroughputRow> profiles) {
  CHECK(!given.sizes.empty() && !profiles.empty() && given.burst_share < 1);
  CHECK(given.deadline_share + given.best_effort_share <= 1);
  CHECK(given.least_seconds <= given.most_seconds);
  RETURN_IF_ERROR(CheckAmount(given));
  WorkloadOptions options = given;
  ASSIGN_OR_RETURN(options.sizes, CutSizes(given));
  ASSIGN_OR_RETURN(const ModelChoice models, ModelChoice::Of(options, profiles));
  JobDraws draws(options, models);
  ASSIGN_OR_RETURN(std::vector<JobSpec> jobs, DrawJobs(options, draws));
  SetSubmits(options, jobs);
  for (JobSpec& job : jobs) {
    if (job.deadline) {
      job.deadline = job.submit + job.deadline->time_since_epoch();
    }
  }
  RETURN_IF_ERROR(CheckTimes(jobs));
  if (options.data_sets > 0) {
    AddDataSets(options.data_sets, options.seed, jobs);
  }
  return jobs;
}

}  // namespace trainyard::trace
