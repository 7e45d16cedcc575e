// SPDX-License-Identifier: Apache-2.0
#include "results/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "base/text.h"
#include "results/metrics/metrics.h"

namespace trainyard::results {
namespace {

// The jobs of a run by name; at once where they lie in the same places as in another run.
class JobFinder {
 public:
  explicit JobFinder(const RunResult& run) : run_(run) {}

  // The job of that name, looked for first at `place`; null: there is none.
  [[nodiscard]] const JobResult* Find(std::string_view name, std::size_t place) {
    if (place < run_.jobs.size() && run_.jobs[place].spec->name == name) {
      return &run_.jobs[place];
    }
    if (by_name_.empty()) {
      for (const JobResult& job : run_.jobs) {
        by_name_.emplace(job.spec->name, &job);
      }
    }
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  const RunResult& run_;
  std::map<std::string_view, const JobResult*> by_name_;
};

void AddJob(const JobResult& job, const JobResult& other, Explanation& explanation,
            std::vector<ExplainedJob>& both) {
  const std::optional<JctParts> parts = PartsOf(job, *explanation.run);
  const std::optional<JctParts> other_parts = PartsOf(other, *explanation.other);
  const bool met = DeadlineMet(job, *explanation.run).value_or(false);
  const bool other_met = DeadlineMet(other, *explanation.other).value_or(false);
  explanation.deadlines_won += met && !other_met ? 1 : 0;
  explanation.deadlines_lost += other_met && !met ? 1 : 0;
  if (parts && other_parts) {
    both.push_back({.job = &job, .other = &other, .parts = *parts});
    both.back().parts -= *other_parts;
    explanation.total += both.back().parts;
  } else if (parts || other_parts) {
    explanation.changes.push_back({.job = &job, .other = &other});
  }
}

// Those of `both` whose difference has the sign of `sign`, the greatest first.
std::vector<ExplainedJob> Foremost(const std::vector<ExplainedJob>& both, int sign,
                                   std::size_t jobs_max) {
  std::vector<ExplainedJob> jobs;
  for (const ExplainedJob& job : both) {
    if (job.parts.sum() * sign > Duration{0}) {
      jobs.push_back(job);
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(), [sign](const ExplainedJob& a, const ExplainedJob& b) {
    return a.parts.sum() * sign > b.parts.sum() * sign;
  });
  jobs.resize(std::min(jobs.size(), jobs_max));
  return jobs;
}

std::string Times(std::uint32_t count) {
  return count == 0 ? "never" : count == 1 ? "once" : fmt::format("{} times", count);
}

std::string Size(Duration difference) { return base::ShortDuration(std::abs(Seconds(difference))); }

// "preempted 4 times instead of once"; empty where it never happened.
std::string Counted(std::string_view what, std::uint32_t count, std::uint32_t other) {
  if (count == 0 && other == 0) {
    return {};
  }
  return count == other ? fmt::format("{} {} in both", what, Times(count))
                        : fmt::format("{} {} instead of {}", what, Times(count), Times(other));
}

std::string InBrackets(std::initializer_list<std::string> texts) {
  std::string inside;
  for (const std::string& text : texts) {
    inside += text.empty() || inside.empty() ? text : ", " + text;
  }
  return inside.empty() ? inside : " (" + inside + ")";
}

double MeanGpus(const JobResult& job) {
  const double seconds = Seconds(job.productive);
  return seconds > 0 ? job.useful_service / seconds : 0;
}

std::string WhyRunning(const ExplainedJob& job) {
  constexpr double kSame = 0.005;
  const double gpus = MeanGpus(*job.job);
  const double other = MeanGpus(*job.other);
  if (std::abs(gpus - other) > kSame * std::max(gpus, other)) {
    return fmt::format(" on {:.3g} GPUs instead of {:.3g}", gpus, other);
  }
  return " on as many GPUs (placement or sharing)";
}

struct Phrase {
  Duration difference{0};
  std::string text;
};

std::vector<Phrase> PhrasesOf(const ExplainedJob& job) {
  const JctParts& parts = job.parts;
  const auto more = [](Duration difference) { return difference > Duration{0}; };
  const auto longer = [&](Duration difference) {
    return Size(difference) + (more(difference) ? " longer" : " less");
  };
  const std::string preempted = Counted("preempted", job.job->preemptions, job.other->preemptions);
  return {
      {parts.queued, "waited " + longer(parts.queued) + " for its first GPUs"},
      {parts.suspended,
       "waited " + longer(parts.suspended) + " later on" + InBrackets({preempted})},
      {parts.productive, "ran " + Size(parts.productive) +
                             (more(parts.productive) ? " longer" : " shorter") + WhyRunning(job)},
      {parts.overhead,
       Size(parts.overhead) + (more(parts.overhead) ? " more" : " less") + " restart overhead" +
           InBrackets({preempted, Counted("migrated", job.job->migrations, job.other->migrations),
                       Counted("resized", job.job->resizes, job.other->resizes)})},
      {parts.registered, "its end is registered " + Size(parts.registered) +
                             (more(parts.registered) ? " later" : " earlier")}};
}

std::string Seen(const JobResult& job, const RunResult& run) {
  if (job.outcome != Outcome::kCompleted) {
    return std::string(Name(job.outcome));
  }
  const std::optional<bool> met = DeadlineMet(job, run);
  return fmt::format("completed after {}{}", base::ShortDuration(Seconds(*Jct(job, run))),
                     !met   ? ""
                     : *met ? ", in time"
                            : ", late");
}

// What became of the deadline, where that differs.
std::string DeadlineText(const ExplainedJob& job, const Explanation& explanation) {
  const bool met = DeadlineMet(*job.job, *explanation.run).value_or(false);
  const bool other = DeadlineMet(*job.other, *explanation.other).value_or(false);
  return met == other ? "" : met ? "; meets its deadline" : "; misses its deadline";
}

// The position of the run with that label, or -1.
int Labelled(std::span<const RunResult> runs, std::string_view label) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].label == label) {
      return static_cast<int>(i);
    }
  }
  // The cluster, which is part of labels where runs are on different ones, may be left out.
  const std::string start = std::string(label) + " on ";
  int found = -1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].label.starts_with(start)) {
      if (found >= 0) {
        return -1;
      }
      found = static_cast<int>(i);
    }
  }
  return found;
}

std::vector<std::string_view> LabelsOf(std::span<const RunResult> runs) {
  std::vector<std::string_view> labels;
  for (const RunResult& run : runs) {
    labels.emplace_back(run.label);
  }
  return labels;
}

}  // namespace

JctParts& JctParts::operator+=(const JctParts& other) {
  for (const JctPartName& name : kJctParts) {
    this->*name.part += other.*name.part;
  }
  return *this;
}

JctParts& JctParts::operator-=(const JctParts& other) {
  for (const JctPartName& name : kJctParts) {
    this->*name.part -= other.*name.part;
  }
  return *this;
}

std::optional<JctParts> PartsOf(const JobResult& job, const RunResult& run) {
  const std::optional<Duration> jct = Jct(job, run);
  if (!jct || !job.start) {
    return std::nullopt;
  }
  JctParts parts{.queued = *job.start - job.spec->submit,
                 .productive = job.productive,
                 .overhead = job.overhead};
  parts.suspended = job.waited - parts.queued;
  parts.registered = *jct - parts.sum();
  return parts;
}

bool OnSameCluster(const RunResult& run, const RunResult& other) {
  return run.cluster_name == other.cluster_name && run.nodes == other.nodes &&
         run.gpus == other.gpus;
}

Result<Explanation> Explain(const RunResult& run, const RunResult& other, std::size_t jobs_max) {
  for (const RunResult* each : {&run, &other}) {
    if (each->ends_only) {
      return InvalidArgument("'" + each->label +
                             "' are results of another program, which do not say what jobs did "
                             "between start and end; expected runs of trainyard");
    }
  }
  if (!OnSameCluster(run, other)) {
    return InvalidArgument(fmt::format(
        "'{}' is a run on cluster {} ({} GPUs) and '{}' on {} ({} GPUs): what jobs gained and lost "
        "would be due to the GPUs; expected two runs on one cluster",
        run.label, run.cluster_name, run.gpus, other.label, other.cluster_name, other.gpus));
  }
  Explanation explanation{.run = &run,
                          .other = &other,
                          .jct_mean = Measure(run).jct_mean,
                          .other_jct_mean = Measure(other).jct_mean};
  JobFinder others(other);
  std::vector<ExplainedJob> both;
  bool common = false;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const JobResult& job = run.jobs[i];
    if (const JobResult* same = others.Find(job.spec->name, i)) {
      common = true;
      AddJob(job, *same, explanation, both);
    }
  }
  if (!common) {
    return InvalidArgument("'" + run.label + "' and '" + other.label +
                           "' have no job in common; expected runs on the same trace");
  }
  explanation.completed_in_both = static_cast<std::int64_t>(both.size());
  explanation.gained = Foremost(both, -1, jobs_max);
  explanation.lost = Foremost(both, 1, jobs_max);
  return explanation;
}

Result<std::optional<std::pair<std::size_t, std::size_t>>> RunsToExplain(
    std::span<const RunResult> runs, const std::string& labels) {
  using Pair = std::optional<std::pair<std::size_t, std::size_t>>;
  if (labels.empty()) {
    std::map<double, std::size_t> by_mean;  // of equal means, the first
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (const std::optional<double> mean = Measure(runs[i]).jct_mean;
          mean && !runs[i].ends_only) {
        by_mean.emplace(*mean, i);
      }
    }
    // What the best run owes to a larger cluster is not the doing of its policy.
    const bool explainable =
        by_mean.size() >= 2 && std::all_of(by_mean.begin(), by_mean.end(), [&](const auto& run) {
          return OnSameCluster(runs[run.second], runs[by_mean.begin()->second]);
        });
    return explainable ? Pair(std::in_place, by_mean.begin()->second, by_mean.rbegin()->second)
                       : Pair();
  }
  // Labels may have commas of their own.
  for (std::size_t comma = labels.find(','); comma != std::string::npos;
       comma = labels.find(',', comma + 1)) {
    const int first = Labelled(runs, std::string_view(labels).substr(0, comma));
    const int second = Labelled(runs, std::string_view(labels).substr(comma + 1));
    if (first >= 0 && second >= 0 && first != second) {
      return Pair(std::in_place, first, second);
    }
  }
  return InvalidArgument("--explain is '" + labels + "'; expected A,B: two of " +
                         base::Join(LabelsOf(runs), ", "));
}

std::string SentenceOf(const ExplainedJob& job, const Explanation& explanation) {
  const Duration sum = job.parts.sum();
  std::vector<Phrase> phrases = PhrasesOf(job);
  std::stable_sort(phrases.begin(), phrases.end(), [](const Phrase& a, const Phrase& b) {
    return std::abs(a.difference.count()) > std::abs(b.difference.count());
  });
  // What is less than a hundredth of the greatest part explains nothing.
  constexpr std::int64_t kLeastShare = 100;
  const std::int64_t least =
      std::max<std::int64_t>(1, std::abs(phrases[0].difference.count()) / kLeastShare);
  std::string text = fmt::format("job {} {} {}", job.job->spec->name,
                                 sum > Duration{0} ? "lost" : "gained", Size(sum));
  const char* before = ": ";
  for (const Phrase& phrase : phrases) {
    if (std::abs(phrase.difference.count()) >= least) {
      text += before + phrase.text;
      before = ", ";
    }
  }
  return text + DeadlineText(job, explanation);
}

std::string SentenceOf(const OutcomeChange& change, const Explanation& explanation) {
  return fmt::format("job {} {} under {}, {} under {}", change.job->spec->name,
                     Seen(*change.job, *explanation.run), explanation.run->label,
                     Seen(*change.other, *explanation.other), explanation.other->label);
}

}  // namespace trainyard::results
