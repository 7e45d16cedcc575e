// SPDX-License-Identifier: Apache-2.0
// Putting another configuration of a cluster in force, and what is said of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/live/client_calls.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

struct Configuring : ClusterOptions {
  std::optional<std::uint64_t> expected{};  // the number of the one in force; none: any
  bool rehearse = false;                    // changes nothing
  bool is_file = true;  // the text is a user's: what is wrong with it is a bad input
  std::string how{};    // how to do what has been rehearsed; {}: the number of the one in force
};

// The one of that number, or the one in force.
[[nodiscard]] Result<v1::ConfigurationReply> FetchConfiguration(
    const ClusterOptions& options, std::optional<std::uint64_t> number);

// Puts what the text says in force, or rehearses that, and prints what changes. `name`: of the
// text, for messages.
[[nodiscard]] Status Configure(const Configuring& options, const std::string& name,
                               const std::string& text);

}  // namespace trainyard::cli
