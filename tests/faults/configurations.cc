// SPDX-License-Identifier: Apache-2.0
#include "faults/configurations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "profile/execution_model.h"
#include "scenario/assembly.h"

namespace trainyard::faults {

std::string FaultConfiguration::Text() const {
  return fmt::format("{} {} {} {} {}", number, policy, placement, removed, parted);
}

std::optional<FaultConfiguration> FaultConfiguration::From(const std::string& text) {
  FaultConfiguration read;
  std::istringstream in(text);
  in >> read.number >> read.policy >> read.placement >> read.removed >> read.parted;
  return in && in.eof() ? std::optional(read) : std::nullopt;
}

namespace {

// Where the policy can do with them. A job that names neither is in the default one.
void AddPartitions(const FaultConfiguration& of, Cluster& cluster) {
  if (of.parted == 0) {
    return;
  }
  Partition first{.name = kFirstNodes, .has_all_nodes = false};
  Partition others{.name = kOtherNodes, .has_all_nodes = false, .is_default = true};
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    Partition& partition = i < static_cast<std::size_t>(of.parted) ? first : others;
    partition.nodes.push_back(cluster.nodes[i].name);
  }
  cluster.partitions = {first, others};
}

}  // namespace

// What the program takes the policy for. Those that remember something are what they are: snapshots
// of another program have their memories.
std::string FaultConfigurations::Meant(const std::string& policy) const {
  constexpr std::array<std::string_view, 4> kInterchanged{"fifo", "srtf", "las", "srsf"};
  const auto named = std::find(kInterchanged.begin(), kInterchanged.end(), policy);
  return named == kInterchanged.end()
             ? policy
             : std::string(kInterchanged.at(
                   (static_cast<std::size_t>(named - kInterchanged.begin()) + program_) %
                   kInterchanged.size()));
}

engine::SharedConfiguration FaultConfigurations::Make(const FaultConfiguration& of) const {
  Result<scenario::Assembly> assembled = scenario::AssembleComponents(
      {.policy = Meant(of.policy), .placement = of.placement, .admission = "all"}, cluster_, "");
  CHECK(assembled.ok());
  const auto parts = std::make_shared<scenario::Assembly>(std::move(assembled).value());
  parts->rates = profile::MakeMixedModel(nullptr);
  Cluster cluster = cluster_;
  if (of.removed >= 0) {
    cluster.nodes[static_cast<std::size_t>(of.removed)].gpus = 0;
  }
  AddPartitions(of, cluster);
  const std::shared_ptr<engine::Configuration> made = parts->Configure(std::move(cluster));
  made->rules = {};
  made->overheads = {};
  made->number = of.number;
  made->note = of.Text();
  made->text = made->note;
  made->owner = parts;
  return made;
}

Result<engine::SharedConfiguration> FaultConfigurations::Read(
    std::string_view note, const engine::Configuration& /*present*/) const {
  const std::optional<FaultConfiguration> read = FaultConfiguration::From(std::string(note));
  return read ? Result(Make(*read)) : BadInput("'" + std::string(note) + "' is no configuration");
}

Result<engine::SharedConfiguration> FaultConfigurations::Make(
    const engine::AskedConfiguration& asked, const engine::Configuration& present) const {
  std::optional<FaultConfiguration> read = FaultConfiguration::From(asked.text);
  const std::optional<FaultConfiguration> former = FaultConfiguration::From(present.note);
  if (!read || !former) {
    return BadInput("'" + asked.text + "' is no configuration");
  }
  read->number = former->number;
  const bool is_other = read->Text() != former->Text();
  read->number = present.number + 1;
  const engine::SharedConfiguration next = Make(*read);
  auto changed = std::make_shared<engine::Configuration>(*next);
  changed->changes = is_other ? "others" : "";
  return engine::SharedConfiguration(changed);
}

}  // namespace trainyard::faults
