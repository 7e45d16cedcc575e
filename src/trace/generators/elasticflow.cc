// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/elasticflow.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/python_random.h"
#include "base/try.h"
#include "trace/csv_format.h"

namespace trainyard::trace {
namespace {

struct Template {
  std::string_view model;
  std::int64_t batch_size;
};

// In the original's order, which the draws refer to.
constexpr std::array kTemplates{
    Template{"resnet50", 64},    Template{"resnet50", 128},   Template{"resnet50", 256},
    Template{"vgg16", 64},       Template{"vgg16", 128},      Template{"vgg16", 256},
    Template{"inception3", 64},  Template{"inception3", 128}, Template{"gpt2", 128},
    Template{"gpt2", 256},       Template{"bert", 128},       Template{"bert", 64},
    Template{"deepspeech2", 64}, Template{"deepspeech2", 32}};

// The rows of kTemplates.
using TemplateRows = std::array<const profile::ThroughputRow*, kTemplates.size()>;

Result<TemplateRows> FindTemplates(const profile::ThroughputTable& profiles) {
  TemplateRows rows{};
  for (std::size_t i = 0; i < kTemplates.size(); ++i) {
    const int row = profiles.Find(kTemplates[i].model, kTemplates[i].batch_size);
    if (row < 0) {
      return BadInput(fmt::format("no profile of '{}' with batch size {}; expected ElasticFlow's",
                                  kTemplates[i].model, kTemplates[i].batch_size));
    }
    rows[i] = &profiles.rows()[static_cast<std::size_t>(row)];
  }
  return rows;
}

// The original's streams, each a generator of its own.
class TemplateDraws {
 public:
  explicit TemplateDraws(const ElasticflowOptions& options)
      : options_(options),
        templates_(options.seed),
        gaps_(options.seed + 1),
        durations_(options.seed + 2),
        sizes_(options.seed + 3),
        deadlines_(options.deadline_seed.value_or(options.seed + 4)) {}

  std::size_t Template() { return templates_.Below(kTemplates.size()); }

  int Gpus() {
    const double u = sizes_.Uniform(0, 1);
    int gpus = 1;
    if (u >= 0.83) {
      gpus = u <= 0.86 ? 2 : u <= 0.89 ? 4 : u <= 0.99 ? 8 : 16;
    }
    while (gpus > options_.largest_job) {
      gpus /= 2;
    }
    return gpus;
  }

  double Gap() { return -std::log(1 - gaps_.Random()) * options_.mean_interarrival; }

  double Duration() {
    const bool is_long = durations_.Random() >= 0.8;
    const double exponent = is_long ? durations_.Uniform(2.5, 4) : durations_.Uniform(1, 2.5);
    return 60 * std::pow(10.0, exponent);
  }

  // Before BestEffort().
  double DeadlineFactor() {
    return deadlines_.Uniform(options_.least_deadline_factor, options_.most_deadline_factor);
  }
  bool BestEffort() { return deadlines_.Random() < options_.best_effort_share; }

 private:
  const ElasticflowOptions& options_;
  base::PythonRandom templates_;
  base::PythonRandom gaps_;
  base::PythonRandom durations_;
  base::PythonRandom sizes_;
  base::PythonRandom deadlines_;
};

// The original prints all its numbers without decimals.
Duration WholeSeconds(double seconds) {
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

Result<JobSpec> DrawTemplateJob(TemplateDraws& draws, const TemplateRows& rows, double submit) {
  const int gpus = draws.Gpus();
  const profile::ThroughputRow& row = *rows[draws.Template()];
  const double duration = draws.Duration();
  const double deadline = submit + std::trunc(draws.DeadlineFactor() * duration);
  const bool best_effort = draws.BestEffort();
  const double iterations = std::trunc(duration * row.Rate(gpus));
  if (iterations < 1) {
    return BadInput(
        fmt::format("no rate of '{}' with batch size {} on {} GPUs that gives an iteration in {} "
                    "s; expected ElasticFlow's",
                    row.model, row.batch_size, gpus, std::trunc(duration)));
  }
  if (deadline > model::kMostTraceSeconds) {
    return InvalidArgument(
        fmt::format("a job is submitted at {} s with its deadline at {} s; expected at most {}",
                    std::trunc(submit), std::trunc(deadline), model::kMostTraceSeconds));
  }
  return JobSpec{.model = row.model,
                 .gpus = gpus,
                 .batch_size = row.batch_size,
                 .submit = TimePoint{WholeSeconds(submit)},
                 .duration = WholeSeconds(duration),
                 .iterations = iterations,
                 .deadline = TimePoint{WholeSeconds(deadline)},
                 .best_effort = best_effort};
}

}  // namespace

std::optional<ElasticflowOptions> OptionsOfFigure(int figure) {
  switch (figure) {
    case 9:
      return ElasticflowOptions{.jobs = 1000, .mean_interarrival = 1500};
    case 10:
      return ElasticflowOptions{
          .jobs = 100, .mean_interarrival = 1500, .seed = 1, .least_deadline_factor = 1.5};
    case 11:
      return ElasticflowOptions{.jobs = 200, .mean_interarrival = 900};
    default:
      return std::nullopt;
  }
}

Result<std::vector<JobSpec>> GenerateElasticflowTrace(const ElasticflowOptions& options,
                                                      const profile::ThroughputTable& profiles) {
  CHECK(options.jobs >= 0 && options.mean_interarrival > 0 && options.largest_job >= 1);
  CHECK(options.seed >> 63U == 0 && options.least_deadline_factor >= 0);
  CHECK(options.least_deadline_factor <= options.most_deadline_factor);
  ASSIGN_OR_RETURN(const TemplateRows rows, FindTemplates(profiles));
  TemplateDraws draws(options);
  std::vector<JobSpec> jobs;
  jobs.reserve(static_cast<std::size_t>(options.jobs));
  double submit = 0;
  for (int i = 0; i < options.jobs; ++i) {
    submit += i == 0 ? 0 : draws.Gap();
    ASSIGN_OR_RETURN(JobSpec job, DrawTemplateJob(draws, rows, submit));
    jobs.push_back(std::move(job));
    jobs.back().name = std::to_string(i);
  }
  return jobs;
}

}  // namespace trainyard::trace
