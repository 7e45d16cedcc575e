// SPDX-License-Identifier: Apache-2.0
// Messages as JSON for users' programs.
#pragma once

#include <google/protobuf/message.h>

#include <vector>

namespace trainyard::cli {

// On standard output: all fields under their names in the .proto file; null where one is not set.
void PrintJson(const google::protobuf::Message& message);
// The same in one line.
void PrintJsonLine(const google::protobuf::Message& message);
void PrintJsonList(const std::vector<const google::protobuf::Message*>& messages);

template <typename Message>
void PrintJsonList(const std::vector<Message>& messages) {
  std::vector<const google::protobuf::Message*> list;
  list.reserve(messages.size());
  for (const Message& message : messages) {
    list.push_back(&message);
  }
  PrintJsonList(list);
}

}  // namespace trainyard::cli
