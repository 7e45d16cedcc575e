// SPDX-License-Identifier: Apache-2.0
// Changes inputs that are messages as messages, so that they are still understood.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>

#include "fuzz/targets.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace trainyard::fuzz {

// Changes some bytes; at most so many come out. libFuzzer's, or another one.
using MutateBytes = std::function<std::string(std::string bytes, std::size_t most)>;

class Mutator {
 public:
  Mutator(std::uint32_t seed, MutateBytes bytes) : random_(seed), bytes_(std::move(bytes)) {}

  // Another input of the target, of at most so many bytes.
  [[nodiscard]] std::string Changed(const Target& target, std::string_view input, std::size_t most);
  // One field, somewhere in the message, is set, changed, added, removed or cleared.
  void Change(google::protobuf::Message& message);

 private:
  struct Part {
    unsigned kind = 0;
    std::string bytes;
  };
  [[nodiscard]] std::size_t Below(std::size_t end);
  [[nodiscard]] bool OneIn(std::size_t count) { return Below(count) == 0; }
  [[nodiscard]] std::string ChangedMessage(const Target& target, unsigned kind,
                                           const std::string& bytes);
  [[nodiscard]] std::string ChangedText(std::string text);
  void ChangeParts(const Target& target, std::vector<Part>& parts);
  void SetField(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                int depth);
  void SetScalar(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                 int at);
  [[nodiscard]] std::int64_t Integer();
  [[nodiscard]] double Real();
  [[nodiscard]] std::string Text(std::string before);

  std::mt19937 random_;
  MutateBytes bytes_;
};

}  // namespace trainyard::fuzz
