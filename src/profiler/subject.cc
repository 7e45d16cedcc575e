// SPDX-License-Identifier: Apache-2.0
#include "profiler/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/placeholders.h"
#include "base/try.h"
#include "profiler/process_runner.h"

namespace trainyard::profiler {
namespace {

std::string NameOf(std::int64_t batch, const TrialShape& shape) {
  std::string name =
      fmt::format("batch {}, {} GPU{}", batch, shape.gpus, shape.gpus == 1 ? "" : "s");
  if (shape.loader_workers > 0) {
    name += fmt::format(", {} loader workers", shape.loader_workers);
  }
  if (shape.cores > 0) {
    name += fmt::format(", {} cores", shape.cores);
  }
  return name;
}

bool Contains(const std::vector<std::string>& command, const std::string& text) {
  return std::any_of(command.begin(), command.end(),
                     [&](const std::string& word) { return word.find(text) != std::string::npos; });
}

}  // namespace

Status NeedsPlaceholder(const Subject& subject, const std::string& name) {
  if (!Contains(subject.command, "{") || Contains(subject.command, "{" + name + "}") ||
      Contains(subject.command, "{" + name + "_per_gpu}")) {
    return {};
  }
  return InvalidArgument(
      fmt::format("the command has placeholders but not {{{0}}}, so all runs would be the same; "
                  "expected {{{0}}} or {{{0}_per_gpu}} in it",
                  name));
}

Result<Trial> TrialOf(const Subject& subject, const TrialShape& shape) {
  const std::int64_t batch = shape.batch > 0 ? shape.batch : subject.batch;
  Trial trial{.name = NameOf(batch, shape),
              .command = subject.command,
              .folder = subject.folder,
              .container = subject.container,
              .gpus = shape.gpus,
              .loader_workers = shape.loader_workers / shape.gpus,
              .cores = shape.cores,
              .warmup = subject.warmup,
              .iterations = subject.iterations,
              .limit = subject.limit,
              .until_notice = shape.until_notice};
  if (trial.loader_workers > 0) {
    // So many workers deliver so many batches at once. What they have begun, and prefetched, before
    // the first iteration comes faster than any later batches.
    constexpr int kBegun = 3;  // by each worker
    trial.burst = trial.loader_workers;
    trial.warmup = std::max<double>(trial.warmup, kBegun * trial.burst);
    trial.iterations = std::ceil(trial.iterations / trial.burst) * trial.burst;
  }
  const std::string workers = std::to_string(trial.loader_workers);
  constexpr double kNotReached = 1e9;
  const std::string iterations =
      fmt::format("{:.0f}", shape.until_notice ? kNotReached : trial.warmup + trial.iterations);
  if (!Contains(trial.command, "{")) {
    if (trial.loader_workers > 0) {
      trial.command.insert(trial.command.end(), {"--workers", workers});
    }
    trial.command.insert(trial.command.end(),
                         {"--batch-size", std::to_string(batch), "--max-iterations", iterations,
                          "--job-name", kTrialJobName});
    return trial;
  }
  if (batch % shape.gpus != 0 && Contains(trial.command, "{batch_per_gpu}")) {
    return InvalidArgument(
        fmt::format("batch {} cannot be divided among {} GPUs, as {{batch_per_gpu}} asks; expected "
                    "a multiple of {}",
                    batch, shape.gpus, shape.gpus));
  }
  const base::Placeholders values{{"batch", std::to_string(batch)},
                                  {"batch_per_gpu", std::to_string(batch / shape.gpus)},
                                  {"gpus", std::to_string(shape.gpus)},
                                  {"workers", std::to_string(shape.loader_workers)},
                                  {"workers_per_gpu", workers},
                                  {"iterations", iterations},
                                  {"name", kTrialJobName}};
  for (std::string& word : trial.command) {
    ASSIGN_OR_RETURN(word, base::Fill(word, values));
  }
  return trial;
}

}  // namespace trainyard::profiler
