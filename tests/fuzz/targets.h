// SPDX-License-Identifier: Apache-2.0
// What reads bytes that others have written: each target takes any bytes and must neither crash nor
// break what it looks at itself. libFuzzer finds inputs (fuzz_main.cc); those in corpus/ are run by
// fuzz_corpus_test in each build.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
  // Inputs to begin with, besides those in corpus/.
  std::vector<std::string> (*seeds)() = nullptr;
};

[[nodiscard]] std::span<const Target> Targets();
// Null: there is none of that name.
[[nodiscard]] const Target* Find(std::string_view name);

// Messages to a controller (calls of clients, and what agents say), to an agent.
void RunController(std::string_view bytes);
void RunAgent(std::string_view bytes);
[[nodiscard]] std::vector<std::string> ControllerSeeds();
[[nodiscard]] std::vector<std::string> AgentSeeds();

// One message after the other as these two read them: what it is, and its length before its bytes.
struct Record {
  unsigned kind = 0;
  std::string_view bytes;
};
[[nodiscard]] std::vector<Record> RecordsOf(std::string_view bytes);
void AddRecord(unsigned kind, const std::string& bytes, std::string& to);

}  // namespace trainyard::fuzz
