// SPDX-License-Identifier: Apache-2.0
// A folder with a small trace and experiments over it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/sweep/experiment.h"
#include "support/scratch_folder.h"
#include "trace/generators/mix.h"
#include "trace/writers.h"

namespace trainyard {

class SmallExperiment {
 public:
  SmallExperiment() { WriteTrace(1); }

  // Jobs that must wait for one another on 8 GPUs.
  void WriteTrace(int variant) const {
    std::vector<JobSpec> jobs;
    for (int i = 0; i < 40; ++i) {
      jobs.push_back({.name = std::to_string(i),
                      .gpus = 1 << (i % 4),
                      .submit = AtSeconds(60 * i),
                      .duration = FromSeconds(60 + (i * 7 + variant) % 11 * 137)});
    }
    EXPECT_FALSE(folder_.Write("t.csv", trace::WriteNativeTrace(jobs)).empty());
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  [[nodiscard]] const ScratchFolder& folder() const { return folder_; }

  // With the trace "t" on a cluster "c"; `runs` are the [[run]]s and what follows.
  [[nodiscard]] experiments::Experiment With(const std::string& runs) const {
    return Parsed("[[trace]]\nname = \"t\"\npath = \"t.csv\"\n" + runs);
  }
  [[nodiscard]] experiments::Experiment Parsed(const std::string& text) const {
    Result<experiments::Experiment> experiment = experiments::ParseExperiment(
        path("e.toml"), "[[cluster]]\nname = \"c\"\nspec = \"1x8\"\n" + text, path("reference"));
    EXPECT_TRUE(experiment.ok()) << (experiment.ok() ? "" : experiment.error().message);
    return experiment.ok() ? std::move(experiment).value() : experiments::Experiment{};
  }

 private:
  ScratchFolder folder_;
};

}  // namespace trainyard
