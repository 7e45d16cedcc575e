// SPDX-License-Identifier: Apache-2.0
// The two ways to read srun: outside of a job, and in a script.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "requests/slurm/srun_options.h"
#include "supervisor/steps/step_options.h"

namespace trainyard::cli {
namespace {

using requests::SbatchOption;

// What is taken outside of a job is taken in a script, too; what the job is has been said there.
TEST(SrunTest, AScriptTakesWhatIsTakenOutsideOfAJob) {
  const std::map<std::string_view, std::string> values{
      {"nodelist", "n0"}, {"exclude", "n1"},       {"gres", "gpu:1"}, {"distribution", "block"},
      {"input", "none"},  {"open-mode", "append"}, {"export", "ALL"}, {"relative", "0"}};
  const std::set<std::string_view> not_of_steps{"help", "multi-prog", "pty", "usage", "version"};
  const auto variable = [](const char* name) -> std::string {
    const std::string_view of = name;
    return of == "SLURM_JOB_NODELIST" ? "n[0-1]" : of == "SLURM_JOB_NUM_NODES" ? "2" : "";
  };
  for (const SbatchOption& option : requests::SrunOptions()) {
    const auto value = values.find(option.name);
    std::string word = "--" + std::string(option.name);
    if (option.value == SbatchOption::Value::kNeeded) {
      word += "=" + (value == values.end() ? "1" : value->second);
    }
    const auto read = supervisor::StepOptions::Read({word, "true"}, variable);
    const bool is_taken = read.ok() && read.value().command == std::vector<std::string>{"true"};
    if (option.use != SbatchOption::Use::kRefused && !not_of_steps.contains(option.name)) {
      EXPECT_TRUE(is_taken) << word << ": " << (read.ok() ? "" : read.error().message);
    } else if (option.name == "multi-prog" || option.name == "prolog") {
      EXPECT_FALSE(read.ok()) << word;
    }
  }
}

}  // namespace
}  // namespace trainyard::cli
