// SPDX-License-Identifier: Apache-2.0
// The configurations of a world of faults: what admins ask for, and the notes of the journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/configuration.h"
#include "trainyard/cluster.h"

namespace trainyard::faults {

// The partitions, where there are any.
inline constexpr const char* kFirstNodes = "first";
inline constexpr const char* kOtherNodes = "others";

struct FaultConfiguration {
  std::uint64_t number = 0;
  std::string policy{};
  std::string placement{};
  int removed = -1;  // the node that is not there; -1: all are
  // The first so many nodes are a partition of their own, and the others the default one; 0: there
  // are none.
  int parted = 0;

  [[nodiscard]] std::string Text() const;
  [[nodiscard]] static std::optional<FaultConfiguration> From(const std::string& text);
};

class FaultConfigurations final : public engine::ConfigurationSource {
 public:
  // `cluster`: with all nodes; must outlive it.
  explicit FaultConfigurations(const Cluster& cluster) : cluster_(cluster) {}

  // Another version of the program, which decides otherwise under the names of some policies.
  void Upgrade() { ++program_; }
  [[nodiscard]] std::string program() const { return "program " + std::to_string(program_); }
  [[nodiscard]] engine::SharedConfiguration Make(const FaultConfiguration& of) const;
  [[nodiscard]] Result<engine::SharedConfiguration> Read(
      std::string_view note, const engine::Configuration& present) const override;
  [[nodiscard]] Result<engine::SharedConfiguration> Make(
      const engine::AskedConfiguration& asked, const engine::Configuration& present) const override;

 private:
  [[nodiscard]] std::string Meant(const std::string& policy) const;

  const Cluster& cluster_;
  std::size_t program_ = 0;
};

}  // namespace trainyard::faults
