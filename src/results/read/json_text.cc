// SPDX-License-Identifier: Apache-2.0
#include "results/read/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/file.h"
#include "io/json.h"

namespace trainyard::results {
namespace {

// Finds where a text stops being JSON; keeps no values.
class Checker final : public nlohmann::json::json_sax_t {
 public:
  [[nodiscard]] std::size_t position() const { return position_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return true; }
  bool key(string_t& /*value*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    position_ = position;
    return false;
  }

 private:
  std::size_t position_ = 0;
};

}  // namespace

Result<std::string> ReadJsonObject(const std::string& path) {
  Result<std::string> text = io::ReadFile(path);
  if (!text.ok()) {
    return text;
  }
  const std::string& json = text.value();
  Checker checker;
  if (!nlohmann::json::sax_parse(json, &checker)) {
    const std::size_t end = std::min(checker.position(), json.size());
    const auto lines =
        std::count(json.begin(), json.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    return BadInput(
        fmt::format("{}:{}: the text ends or goes wrong here; expected JSON", path, lines + 1));
  }
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (json[first] != '{') {
    return BadInput(path + ":1: is not an object; expected '{'");
  }
  return text;
}

}  // namespace trainyard::results
