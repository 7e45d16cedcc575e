// SPDX-License-Identifier: Apache-2.0
#include "policies/optimus/marginal_gains.h"

#include <optional>
#include <queue>

namespace trainyard::policies {
namespace {

struct Step {
  double gain = 0;  // seconds for each GPU more; > 0
  std::size_t job = 0;
  std::size_t to = 0;
};

struct After {
  bool operator()(const Step& a, const Step& b) const {
    return a.gain != b.gain ? a.gain < b.gain : a.job > b.job;
  }
};

int MoreGpus(const std::vector<Prospect>& prospects, std::size_t from, std::size_t to) {
  return prospects[to].gpus - prospects[from].gpus;
}

// The best step of one job for which `free` GPUs suffice.
std::optional<Step> BestStep(const std::vector<Prospect>& prospects, std::size_t from, int free) {
  std::optional<Step> best;
  for (std::size_t to = from + 1; to < prospects.size(); ++to) {
    const int more = MoreGpus(prospects, from, to);
    if (more > free) {
      break;
    }
    const double gain = (prospects[from].seconds - prospects[to].seconds) / more;
    if (gain > (best ? best->gain : 0)) {
      best = Step{.gain = gain, .to = to};
    }
  }
  return best;
}

}  // namespace

std::vector<std::size_t> ChooseByGain(std::span<const std::vector<Prospect>> jobs, int free) {
  std::vector<std::size_t> chosen(jobs.size(), 0);
  std::priority_queue<Step, std::vector<Step>, After> steps;
  const auto enqueue = [&](std::size_t job) {
    if (std::optional<Step> step = BestStep(jobs[job], chosen[job], free)) {
      step->job = job;
      steps.push(*step);
    }
  };
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    enqueue(job);
  }
  // Free GPUs only become fewer, so the gain of a queued step is never too low; a job whose step no
  // longer fits is queued again with its best step that does.
  while (free > 0 && !steps.empty()) {
    const Step step = steps.top();
    steps.pop();
    const int more = MoreGpus(jobs[step.job], chosen[step.job], step.to);
    if (more <= free) {
      free -= more;
      chosen[step.job] = step.to;
    }
    enqueue(step.job);
  }
  return chosen;
}

}  // namespace trainyard::policies
