// SPDX-License-Identifier: Apache-2.0
// What reads bytes that others have written: each target takes any bytes and must neither crash nor
// break what it looks at itself. libFuzzer finds inputs (fuzz_main.cc); those in corpus/ are run by
// fuzz_corpus_test in each build.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace trainyard::fuzz {

struct Target {
  std::string_view name;
  // Whether the input was understood: it got beyond what refuses bytes of no meaning.
  bool (*run)(std::string_view bytes);
  // Inputs to begin with, besides those in corpus/.
  std::vector<std::string> (*seeds)() = nullptr;
  // What the bytes are, so that they can be changed as that: empty messages, by the kind of the
  // record; null: bytes of another form, where there is no such function text.
  const google::protobuf::Message* (*message)(unsigned kind) = nullptr;
  unsigned kinds = 0;  // of records; 0: the input is one message
};

[[nodiscard]] std::span<const Target> Targets();
// Null: there is none of that name.
[[nodiscard]] const Target* Find(std::string_view name);

// Messages to a controller (calls of clients, and what agents say), to an agent.
bool RunController(std::string_view bytes);
bool RunAgent(std::string_view bytes);
[[nodiscard]] const google::protobuf::Message* ToController(unsigned kind);
[[nodiscard]] const google::protobuf::Message* ToAgent(unsigned kind);
inline constexpr unsigned kControllerKinds = 6;
inline constexpr unsigned kAgentKinds = 30;  // seconds before the message
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
