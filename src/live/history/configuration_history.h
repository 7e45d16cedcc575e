// SPDX-License-Identifier: Apache-2.0
// The configurations that there have been, for those who want to see or apply one again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/configuration.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct PastConfiguration {
  std::uint64_t number = 0;
  std::string author{};
  double since = 0;
  std::string changes{};
  std::string text{};

  void Serialize(StateStream& state) { state(number, author, since, changes, text); }
};

// Immutable, as views share it: Add makes another one.
class ConfigurationHistory {
 public:
  // More are forgotten, the oldest first.
  static constexpr std::size_t kMost = 100;

  // The oldest first; the last is the one in force. Empty: none has followed the first.
  [[nodiscard]] const std::vector<PastConfiguration>& all() const { return all_; }
  // Null: it is not kept.
  [[nodiscard]] const PastConfiguration* Find(std::uint64_t number) const;
  // `next` takes the place of `former`.
  [[nodiscard]] std::shared_ptr<const ConfigurationHistory> With(
      const engine::Configuration& former, const engine::Configuration& next) const;

  void Serialize(StateStream& state) { state(all_); }

 private:
  std::vector<PastConfiguration> all_;
};

}  // namespace trainyard::live
