// SPDX-License-Identifier: Apache-2.0
// The configurations that follow the first one of a simulation (ConfigurationChange).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/configuration.h"
#include "model/event.h"
#include "scenario/inputs.h"
#include "scenario/preset.h"
#include "trainyard/job.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::scenario {

class PlannedConfigurations final : public engine::ConfigurationSource {
 public:
  using SharedJobs = std::shared_ptr<const std::vector<JobSpec>>;

  // Makes those of the changes of the inputs, which must outlive the result. `names`: of the first
  // configuration. Errors: names that do not go together, or not with cluster and jobs; profiles
  // that cannot be read; rules under which the policy cannot change.
  [[nodiscard]] Status Plan(const Inputs& inputs, PresetRequest names);

  // When they come, by time.
  [[nodiscard]] const std::vector<model::Event>& facts() const { return facts_; }
  // The jobs of the inputs, each with its row of the profiles that there are when it comes.
  [[nodiscard]] SharedJobs WithTheirRows(SharedJobs jobs) const;

  [[nodiscard]] Result<engine::SharedConfiguration> Read(
      std::string_view note, const engine::Configuration& present) const override;

 private:
  using SharedInputs = std::shared_ptr<const Inputs>;

  [[nodiscard]] Status Add(const ConfigurationChange& change, const SharedInputs& inputs,
                           const PresetRequest& names);

  std::map<std::string, engine::SharedConfiguration, std::less<>> all_;  // by note
  std::vector<model::Event> facts_;
  std::vector<std::pair<TimePoint, SharedInputs>> with_profiles_;  // other profiles, by time
};

}  // namespace trainyard::scenario
