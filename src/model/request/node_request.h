// SPDX-License-Identifier: Apache-2.0
// What a job asks of its nodes beside GPUs (NodeRequest), as it is written.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::model {

// ------------------------------------------------------------------------------------------ texts

// "8", "0.5/gpu", "16/node".
[[nodiscard]] std::string TextOf(const CpuRequest& cpus);
// "64G", "512M/gpu".
[[nodiscard]] std::string TextOf(const MemoryRequest& memory);
[[nodiscard]] std::string TextOf(const TmpRequest& space);
// "2", "2-4".
[[nodiscard]] std::string TextOf(const NodeCount& nodes);
// The same back; false: the text is none of these. Memory without a unit is MiB. "4/task" is
// read where a job's tasks are known (tasks.h), and not here.
[[nodiscard]] bool ReadText(std::string_view text, CpuRequest& cpus);
[[nodiscard]] bool ReadText(std::string_view text, MemoryRequest& memory);
[[nodiscard]] bool ReadText(std::string_view text, TmpRequest& space);
[[nodiscard]] bool ReadText(std::string_view text, NodeCount& nodes);
// What the texts of the type look like, for messages.
[[nodiscard]] std::string_view ExpectedText(const CpuRequest& cpus);
[[nodiscard]] std::string_view ExpectedText(const MemoryRequest& memory);
[[nodiscard]] std::string_view ExpectedText(const TmpRequest& space);
[[nodiscard]] std::string_view ExpectedText(const NodeCount& nodes);

// Fields that every form of a job has as such a text.
template <typename T>
concept HasText = requires(T value, std::string_view text) {
  { ReadText(text, value) } -> std::same_as<bool>;
};

// MiB: "64G", "1.5T", "512"; nothing: it is none.
[[nodiscard]] std::optional<std::int64_t> ReadMib(std::string_view text);
[[nodiscard]] std::string MibText(std::int64_t mib);

// All that it asks for: "16 CPUs/node, 64G memory, on n[0-3]"; empty: nothing.
[[nodiscard]] std::string TextOf(const NodeRequest& request);

// What `licenses` names, in its order. Errors: it is no such list.
[[nodiscard]] Result<std::vector<License>> ParseLicenses(std::string_view text);

// Error: lists, constraint or licences that are none, whatever the cluster.
[[nodiscard]] Status CheckTexts(const NodeRequest& request);

// ------------------------------------------------------------------------------------ constraints

// "nvlink&(a100|h100)", "!old", "ib*2&fast": an expression over the labels of a node, and how many
// nodes of a gang have to meet others (behind '*').
class Constraint {
 public:
  // Counts stand outside of brackets, between '&' alone. Errors: the text is none.
  [[nodiscard]] static Result<Constraint> Parse(std::string_view text);

  // Whether a job may lie on a node with these labels.
  [[nodiscard]] bool Admits(const std::vector<std::string>& labels) const;
  // So many of its nodes have to meet each of these.
  [[nodiscard]] std::size_t counted() const { return counted_.size(); }
  [[nodiscard]] int CountOf(std::size_t counted) const { return counted_[counted].second; }
  [[nodiscard]] bool Meets(std::size_t counted, const std::vector<std::string>& labels) const;

 private:
  // In postfix order: labels, and the signs ! & |.
  using Postfix = std::vector<std::string>;
  class Parser;
  [[nodiscard]] static bool Holds(const Postfix& of, const std::vector<std::string>& labels);

  std::vector<Postfix> all_;  // each of them
  std::vector<std::pair<Postfix, int>> counted_;
};

}  // namespace trainyard::model
