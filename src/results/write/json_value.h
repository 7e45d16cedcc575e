// SPDX-License-Identifier: Apache-2.0
// What every writer of JSON needs: values that may be absent, arrays, texts of any bytes.
#pragma once

#include <optional>
#include <string>

#include "io/json.h"

// null for none.
template <typename T>
struct nlohmann::adl_serializer<std::optional<T>> {
  template <typename Json>
  static void to_json(Json& json, const std::optional<T>& value) {
    json = value ? Json(*value) : Json();
  }
};

namespace trainyard::results {

using Json = nlohmann::ordered_json;  // keys in the order in which they are set

// null for none. JsonType: a type of values of nlohmann's library.
template <typename JsonType, typename T>
[[nodiscard]] JsonType OrNull(const std::optional<T>& value) {
  return value ? JsonType(*value) : JsonType();
}

// `value_of` each element of a list.
template <typename List, typename ValueOf>
[[nodiscard]] Json ArrayOf(const List& list, ValueOf value_of) {
  Json array = Json::array();
  for (const auto& element : list) {
    array.push_back(value_of(element));
  }
  return array;
}

// Names come from users' files and need not be UTF-8: what is not becomes U+FFFD. -1: on one line.
[[nodiscard]] inline std::string JsonText(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainyard::results
