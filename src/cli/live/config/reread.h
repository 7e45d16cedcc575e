// SPDX-License-Identifier: Apache-2.0
// The configuration of a controller or an agent that runs, read again when it gets SIGHUP.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "cli/commands.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// The options that have been given to the command, as texts, by their names ("--operators").
[[nodiscard]] std::map<std::string, std::string> GivenOptions(const CLI::App& command);

class Reread {
 public:
  // Error: it is wrong, and nothing is taken of it.
  using Take = std::function<Status(const Command& now)>;

  // `chosen`: as at the start; must outlive it. `taken`: the names of the options that `take` gives
  // to the running program; others need a restart.
  Reread(const Command& chosen, std::set<std::string> taken, Take take)
      : chosen_(chosen), taken_(std::move(taken)), take_(std::move(take)), run_(chosen.given) {}

  // Reads it and takes what can be taken. A line for the log: what has been taken, what needs a
  // restart, or what is wrong, in which case everything stays as it was.
  [[nodiscard]] std::string Read();

 private:
  const Command& chosen_;
  const std::set<std::string> taken_;
  const Take take_;
  std::map<std::string, std::string> run_;  // what the program runs with
};

}  // namespace trainyard::cli
