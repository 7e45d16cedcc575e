// SPDX-License-Identifier: Apache-2.0
#include "trace/device_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kExpectedDevices =
    "GPUs as {'node':[0 1] 'other':[0 1]}, [\"0 1\" \"0 1\"] or \"0 1\"";

// One node's GPUs as they are written.
struct DeviceGroup {
  DeviceNode node;
  std::string_view gpus;
};

// The text from the cursor up to `end`, which is passed over; nothing if it does not come.
std::optional<std::string_view> UpTo(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return text;
}

// Passes over blanks and then over `wanted`, if that is what follows.
bool Take(std::string_view& rest, char wanted) {
  rest = base::Trim(rest);
  if (rest.empty() || rest.front() != wanted) {
    return false;
  }
  rest.remove_prefix(1);
  return true;
}

// {'node':[0 1] 'other':[0 1]}, without the braces.
std::optional<std::vector<DeviceGroup>> ReadMap(std::string_view rest) {
  std::vector<DeviceGroup> groups;
  while (!base::Trim(rest).empty()) {
    const bool opened = Take(rest, '\'');
    const auto name = opened ? UpTo(rest, '\'') : std::nullopt;
    const bool listed = name && !name->empty() && Take(rest, ':') && Take(rest, '[');
    const auto gpus = listed ? UpTo(rest, ']') : std::nullopt;
    if (!gpus) {
      return std::nullopt;
    }
    groups.push_back({.node = {.name = std::string(*name)}, .gpus = *gpus});
  }
  return groups;
}

// ['0 1' '0 1'], without the brackets: group by group the nodes of the cluster.
std::optional<std::vector<DeviceGroup>> ReadList(std::string_view rest) {
  std::vector<DeviceGroup> groups;
  while (!base::Trim(rest).empty()) {
    const auto gpus = Take(rest, '\'') ? UpTo(rest, '\'') : std::nullopt;
    if (!gpus) {
      return std::nullopt;
    }
    groups.push_back({.node = {.position = static_cast<int>(groups.size())}, .gpus = *gpus});
  }
  return groups;
}

std::optional<std::vector<DeviceGroup>> ReadGroups(std::string_view text) {
  text = base::Trim(text);
  const auto inside = [&](char open, char close) {
    return text.size() > 1 && text.front() == open && text.back() == close;
  };
  if (inside('{', '}')) {
    return ReadMap(text.substr(1, text.size() - 2));
  }
  if (inside('[', ']')) {
    return ReadList(text.substr(1, text.size() - 2));
  }
  return std::vector<DeviceGroup>{{.node = {.position = 0}, .gpus = text}};
}

// "0 1": the bits of these GPUs; nothing where it is something else, or where one is there twice.
std::optional<std::uint64_t> ReadGpus(std::string_view text) {
  std::uint64_t gpus = 0;
  for (const std::string_view word : base::Split(text, " ")) {
    if (word.empty()) {
      continue;
    }
    int gpu = -1;
    const auto [stop, code] = std::from_chars(word.data(), word.data() + word.size(), gpu);
    if (code != std::errc{} || stop != word.data() + word.size() || gpu < 0 ||
        gpu >= kMaxGpusPerNode) {
      return std::nullopt;
    }
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(gpu);
    if ((gpus & bit) != 0) {
      return std::nullopt;
    }
    gpus |= bit;
  }
  return gpus == 0 ? std::nullopt : std::optional(gpus);
}

// "0 1"
void AppendGpus(std::uint64_t gpus, std::string& text) {
  for (const char* between = ""; gpus != 0; gpus &= gpus - 1, between = " ") {
    fmt::format_to(std::back_inserter(text), "{}{}", between, std::countr_zero(gpus));
  }
}

}  // namespace

NodeId DeviceLists::NodeOf(const DeviceNode& node) {
  const auto found = std::find(nodes_.begin(), nodes_.end(), node);
  const auto position = static_cast<std::size_t>(found - nodes_.begin());
  if (found == nodes_.end()) {
    nodes_.push_back(node);
  }
  return NodeAt(position);
}

Result<Slices> DeviceLists::Read(const io::CsvRow& row, int column) {
  const auto groups = ReadGroups(row.Text(column));
  if (!groups || groups->empty()) {
    return row.Bad(column, kExpectedDevices);
  }
  Slices slices;
  for (const DeviceGroup& group : *groups) {
    const std::optional<std::uint64_t> gpus = ReadGpus(group.gpus);
    if (!gpus) {
      return row.Bad(column, fmt::format("{}, each GPU once, from 0 to {}", kExpectedDevices,
                                         kMaxGpusPerNode - 1));
    }
    slices.push_back({.node = NodeOf(group.node), .gpus = *gpus});
  }
  return slices;
}

std::string DeviceListOf(const Slices& slices, std::span<const DeviceNode> nodes) {
  const auto node_of = [&](const Slice& slice) -> const DeviceNode& {
    return nodes[Index(slice.node)];
  };
  const bool by_name = !node_of(slices.front()).name.empty();
  std::string text(1, by_name ? '{' : '[');
  for (const Slice& slice : slices) {
    text += text.size() > 1 ? " " : "";
    if (by_name) {
      text += '\'' + node_of(slice).name + "':";
    }
    text += by_name ? '[' : '\'';
    AppendGpus(slice.gpus, text);
    text += by_name ? ']' : '\'';
  }
  return text + (by_name ? '}' : ']');
}

}  // namespace trainyard::trace
