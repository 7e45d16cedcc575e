// SPDX-License-Identifier: Apache-2.0
// What decisions depend on beside the facts: one immutable, numbered value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/rules.h"
#include "profile/measured_model.h"
#include "profile/overhead_model.h"
#include "profile/throughput_table.h"
#include "scheduler/bundle.h"
#include "trainyard/cluster.h"
#include "trainyard/component.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::engine {

class ForkRunner;

// Held as shared_ptr<const Configuration> by engine, world and forks. A later one takes its place
// as a whole (Engine::Reconfigure); its nodes are those of the former, in the same places, and new
// ones behind them. A node that has been removed keeps its place, without GPUs. A node that has
// another number or type of GPUs is down until the world says that it is up.
struct Configuration {
  std::uint64_t number = 0;  // of the changes before it
  // From which a ConfigurationSource makes it again. Empty: there is none.
  std::string note{};
  model::Rules rules{};
  Cluster cluster{};
  scheduler::Bundle bundle{};  // with a selector: the one in charge until it chooses
  // With a selector: what it chooses among, and what simulates forks for it.
  const Selector* selector = nullptr;
  std::vector<scheduler::Bundle> candidates{};
  const ForkRunner* forks = nullptr;
  const ExecutionModel* rates = nullptr;
  profile::OverheadModel overheads{};
  // What `rates` know of models; null: nothing by throughput profiles.
  const profile::ThroughputTable* profiles = nullptr;
  // Binds the specification of a job to what `rates` know of its model besides `profiles`, or says
  // why the job cannot run. Empty: there is nothing.
  std::function<Status(JobSpec&)> bind{};
  profile::Corrector corrector{};  // how it corrects `rates`; empty: as profile::MeasuredModel does
  // For users: who has made the change (empty: the options of a start) and when (Unix time), all of
  // it as TOML, the policy as the operator named it, what it looks at, and whether it takes only
  // jobs that can be ended by their deadlines.
  std::string author{};
  double since = 0;
  std::string changes{};  // from the one before, in words
  std::string text{};
  std::string policy{};
  PolicyTraits traits{};
  bool promises = false;
  // Keeps alive the components and models that the pointers above lead to. Null: these outlive all
  // holders of the configuration.
  std::shared_ptr<const void> owner{};

  [[nodiscard]] bool BindsJobs() const { return bind || profiles != nullptr; }
  // The row of `profiles` of a job that states iterations; none: the job has none.
  void FindRow(JobSpec& job) const {
    if (job.gpus > 0 && job.iterations && profiles != nullptr) {
      job.profile_row = profiles->Find(job.model, job.batch_size);
    }
  }
  [[nodiscard]] Status Bind(JobSpec& job) const { return bind ? bind(job) : Status(); }
};

// Whether a node is the one that it was, as far as those can tell who hold GPUs of it.
[[nodiscard]] inline bool HasSameGpus(const NodeSpec& one, const NodeSpec& other) {
  return one.gpus == other.gpus && one.gpu_type == other.gpu_type;
}

// Whether the node only keeps its place, and how many do not.
[[nodiscard]] inline bool IsRemoved(const NodeSpec& node) { return node.gpus == 0; }
[[nodiscard]] inline std::size_t NodesThere(const Cluster& cluster) {
  return static_cast<std::size_t>(
      std::count_if(cluster.nodes.begin(), cluster.nodes.end(),
                    [](const NodeSpec& node) { return !IsRemoved(node); }));
}

using SharedConfiguration = std::shared_ptr<const Configuration>;
[[nodiscard]] inline SharedConfiguration Share(Configuration configuration) {
  return std::make_shared<const Configuration>(std::move(configuration));
}

// The job of `former` under the next one: with its row of the profiles that there are then. A job
// that states iterations only and has none any more runs as long as it would have by the former
// ones.
[[nodiscard]] std::shared_ptr<const JobSpec> SpecUnder(const Configuration& next,
                                                       const Configuration& former,
                                                       const JobSpec& job);

// A configuration that somebody asks for.
struct AskedConfiguration {
  std::string name{};  // of the text, for messages
  std::string text{};  // as Configuration::text
  std::string author{};
  double since = 0;
};

// What makes configurations of the notes of kConfigured.
class ConfigurationSource {
 public:
  virtual ~ConfigurationSource() = default;
  // The configuration that takes the place of `present`. Read with its own note (Configuration), it
  // comes out the same, whatever is present. Errors: the note is no configuration, or none that may
  // follow `present`.
  [[nodiscard]] virtual Result<SharedConfiguration> Read(std::string_view note,
                                                         const Configuration& present) const = 0;
  // What is asked for, to follow `present`; its text is that of `present` where both mean the same.
  // Errors: "name:line: what; expected"; those of Read.
  [[nodiscard]] virtual Result<SharedConfiguration> Make(const AskedConfiguration& /*asked*/,
                                                         const Configuration& /*present*/) const {
    return Failed("the configuration cannot be changed here");
  }
};

}  // namespace trainyard::engine
