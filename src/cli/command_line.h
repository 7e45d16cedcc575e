// SPDX-License-Identifier: Apache-2.0
// The command line of the program: parsed, and explained where something is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace trainyard::cli {

inline constexpr int kStatusSuccess = 0;
inline constexpr int kStatusFailed = 1;
inline constexpr int kStatusWrongUsage = 2;
inline constexpr int kStatusBadInput = 3;

class CommandLine {
 public:
  // As given, without the program's name.
  explicit CommandLine(std::vector<std::string> words);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // What is to be done: run `chosen()`, or print and end with the status.
  struct Outcome {
    bool runs = false;
    int status = kStatusSuccess;
    std::string out{};
    std::string errors{};
  };
  // Once only.
  [[nodiscard]] Outcome Parse();

  // What the command line asks for.
  [[nodiscard]] Command& chosen() { return chosen_; }
  // --plugin
  [[nodiscard]] const std::vector<std::string>& plugins() const { return plugins_; }

 private:
  [[nodiscard]] std::string WhatIsUnknown(const std::string& command) const;

  std::vector<std::string> words_;
  CLI::App app_;
  Command chosen_;
  std::vector<std::string> plugins_;
};

}  // namespace trainyard::cli
