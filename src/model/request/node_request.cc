// SPDX-License-Identifier: Apache-2.0
#include "model/request/node_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"

namespace trainyard::model {
namespace {

constexpr std::int64_t kMilli = 1000;
constexpr double kMostAmount = 1e9;  // cores, MiB

// ------------------------------------------------------------------------------------------ texts

std::string_view PerText(Per per) {
  return per == Per::kNode ? "/node" : per == Per::kGpu ? "/gpu" : "";
}

// Takes "/node" or "/gpu" off the end.
Per TakePer(std::string_view& text) {
  for (const Per per : {Per::kNode, Per::kGpu}) {
    if (text.ends_with(PerText(per))) {
      text.remove_suffix(PerText(per).size());
      return per;
    }
  }
  return Per::kJob;
}

std::string NumberText(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", number);
  return text.data();
}

}  // namespace

std::string MibText(std::int64_t mib) {
  constexpr std::int64_t kGib = 1024;
  return mib % kGib == 0 ? std::to_string(mib / kGib) + "G" : std::to_string(mib) + "M";
}

std::optional<std::int64_t> ReadMib(std::string_view text) {
  double unit = 1;
  if ((text.ends_with('B') || text.ends_with('b')) && text.size() > 1) {
    text.remove_suffix(1);
    text.remove_suffix(text.ends_with('i') ? 1 : 0);
  }
  constexpr double kStep = 1024;
  constexpr std::array<std::pair<char, double>, 4> kUnits{
      {{'k', 1 / kStep}, {'m', 1}, {'g', kStep}, {'t', kStep * kStep}}};
  for (const auto& [letter, size] : kUnits) {
    if (!text.empty() && (text.back() | 0x20) == letter) {
      unit = size;
      text.remove_suffix(1);
      break;
    }
  }
  const std::optional<double> number = base::ToNumber(text);
  if (!number || !(*number > 0) || *number * unit > kMostAmount) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(std::ceil(*number * unit));
}

std::string TextOf(const CpuRequest& cpus) {
  return NumberText(static_cast<double>(cpus.milli) / kMilli).append(PerText(cpus.per));
}

std::string TextOf(const MemoryRequest& memory) {
  return MibText(memory.mib).append(PerText(memory.per));
}

std::string TextOf(const TmpRequest& space) { return MibText(space.mib); }

std::string TextOf(const NodeCount& nodes) {
  return std::to_string(nodes.least) +
         (nodes.most == nodes.least ? "" : "-" + std::to_string(nodes.most));
}

bool ReadText(std::string_view text, CpuRequest& cpus) {
  cpus.per = TakePer(text);
  const std::optional<double> number = base::ToNumber(text);
  if (!number || !(*number >= 0.001) || *number > kMostAmount) {
    return false;
  }
  cpus.milli = std::llround(*number * kMilli);
  return true;
}

bool ReadText(std::string_view text, MemoryRequest& memory) {
  memory.per = TakePer(text);
  const std::optional<std::int64_t> mib = ReadMib(text);
  memory.mib = mib.value_or(0);
  return mib.has_value();
}

bool ReadText(std::string_view text, TmpRequest& space) {
  const std::optional<std::int64_t> mib = ReadMib(text);
  space.mib = mib.value_or(0);
  return mib.has_value();
}

bool ReadText(std::string_view text, NodeCount& nodes) {
  const std::size_t dash = text.find('-');
  const auto least = base::ToInteger<int>(text.substr(0, dash));
  const auto most =
      dash == std::string_view::npos ? least : base::ToInteger<int>(text.substr(dash + 1));
  if (!least || !most || *least < 1 || *most < *least) {
    return false;
  }
  nodes = {.least = *least, .most = *most};
  return true;
}

std::string_view ExpectedText(const CpuRequest& /*cpus*/) {
  return "CPUs for the whole job (8), or for each of its nodes (16/node) or GPUs (4/gpu)";
}
std::string_view ExpectedText(const MemoryRequest& /*memory*/) {
  return "memory for the whole job (64G), or for each of its nodes (128G/node) or GPUs (16G/gpu); "
         "units K, M, G and T";
}
std::string_view ExpectedText(const TmpRequest& /*space*/) {
  return "a size with unit K, M, G or T: 100G";
}
std::string_view ExpectedText(const NodeCount& /*nodes*/) {
  return "a number of nodes (2), or from the least to the most (2-4)";
}

std::string TextOf(const NodeRequest& request) {
  std::string text;
  const auto add = [&text](bool is_there, const std::string& part) {
    if (is_there) {
      text += (text.empty() ? "" : ", ") + part;
    }
  };
  add(request.cpus.milli > 0, NumberText(static_cast<double>(request.cpus.milli) / kMilli) +
                                  (request.cpus.milli == kMilli ? " CPU" : " CPUs") +
                                  std::string(PerText(request.cpus.per)));
  add(request.memory.mib > 0,
      MibText(request.memory.mib) + " memory" + std::string(PerText(request.memory.per)));
  add(request.nodes.least > 0,
      TextOf(request.nodes) + (request.nodes.most == 1 ? " node" : " nodes"));
  add(request.exclusive, "nodes for itself");
  add(request.tmp.mib > 0, MibText(request.tmp.mib) + " for temporary files");
  add(!request.node_list.empty(), "on " + request.node_list);
  add(!request.exclude.empty(), "not on " + request.exclude);
  add(!request.constraint.empty(), "constraint '" + request.constraint + "'");
  add(!request.licenses.empty(), "licences " + request.licenses);
  return text;
}

Result<std::vector<License>> ParseLicenses(std::string_view text) {
  std::vector<License> licenses;
  for (const std::string_view item : base::Split(text, ",")) {
    const std::size_t colon = item.find(':');
    const std::optional<int> count = colon == std::string_view::npos
                                         ? std::optional(1)
                                         : base::ToInteger<int>(item.substr(colon + 1));
    const std::string name(item.substr(0, colon));
    if (name.empty() || !count || *count < 1) {
      return InvalidArgument("licences '" + std::string(text) +
                             "'; expected names with numbers: matlab:2,simulink");
    }
    const auto same = [&name](const License& other) { return other.name == name; };
    if (std::any_of(licenses.begin(), licenses.end(), same)) {
      return InvalidArgument("licences '" + std::string(text) + "' name '" + name +
                             "' twice; expected each once");
    }
    licenses.push_back({.name = name, .count = *count});
  }
  return licenses;
}

// ------------------------------------------------------------------------------------ constraints

class Constraint::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Constraint> Parse() {
    Constraint constraint;
    // Parts between '&' that are not in brackets; with a '|' there the text is one part.
    do {
      Postfix part;
      RETURN_IF_ERROR(ReadAny(part));
      if (!Take('*')) {
        constraint.all_.push_back(std::move(part));
        continue;
      }
      if (has_bar_) {
        return Bad();
      }
      std::string digits;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        digits += text_[at_++];
      }
      const std::optional<int> count = base::ToInteger<int>(digits);
      if (!count || *count < 1) {
        return Bad();
      }
      constraint.counted_.emplace_back(std::move(part), *count);
    } while (TakeAnd());
    if (at_ != text_.size() || constraint.counted_.size() > kMostCounted) {
      return Bad();
    }
    return constraint;
  }

 private:
  static constexpr std::size_t kMostCounted = 3;

  [[nodiscard]] Error Bad() const {
    return InvalidArgument("constraint '" + std::string(text_) +
                           "'; expected labels of nodes with & (and), | (or), ! (not) and "
                           "brackets: 'nvlink&(a100|h100)', or with the number of nodes that have "
                           "them, at most three times: 'ib*2&fast'");
  }
  bool Take(char sign) {
    const bool is_there = at_ < text_.size() && text_[at_] == sign;
    at_ += is_there ? 1 : 0;
    return is_there;
  }
  bool TakeAnd() { return Take('&') || Take(','); }

  // At the outermost level '&' ends it, unless a '|' follows somewhere there.
  Status ReadAny(Postfix& out) {
    RETURN_IF_ERROR(ReadAll(out));
    while (Take('|')) {
      has_bar_ = has_bar_ || depth_ == 0;
      RETURN_IF_ERROR(ReadAll(out));
      out.emplace_back("|");
    }
    return {};
  }
  Status ReadAll(Postfix& out) {
    RETURN_IF_ERROR(ReadOne(out));
    while ((depth_ > 0 || HasBarAhead()) && TakeAnd()) {
      RETURN_IF_ERROR(ReadOne(out));
      out.emplace_back("&");
    }
    return {};
  }
  // Whether there is a '|' outside of all brackets.
  [[nodiscard]] bool HasBarAhead() const {
    int depth = 0;
    return std::any_of(text_.begin(), text_.end(), [&depth](char sign) {
      depth += sign == '(' ? 1 : sign == ')' ? -1 : 0;
      return sign == '|' && depth == 0;
    });
  }
  Status ReadOne(Postfix& out) {
    bool negated = false;
    while (Take('!')) {
      negated = !negated;
    }
    RETURN_IF_ERROR(ReadLabelOrBrackets(out));
    if (negated) {
      out.emplace_back("!");
    }
    return {};
  }
  Status ReadLabelOrBrackets(Postfix& out) {
    if (Take('(')) {
      constexpr int kMostDepth = 64;
      if (++depth_ > kMostDepth) {
        return Bad();
      }
      RETURN_IF_ERROR(ReadAny(out));
      --depth_;
      return Take(')') ? Status() : Bad();
    }
    std::string label;
    while (at_ < text_.size() && IsOfLabel(text_[at_])) {
      label += text_[at_++];
    }
    if (label.empty()) {
      return Bad();
    }
    out.push_back(std::move(label));
    return {};
  }
  static bool IsOfLabel(char letter) {
    const char low = static_cast<char>(letter | 0x20);
    return (low >= 'a' && low <= 'z') || (letter >= '0' && letter <= '9') ||
           std::string_view("._-:/=").find(letter) != std::string_view::npos;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool has_bar_ = false;
};

Result<Constraint> Constraint::Parse(std::string_view text) {
  std::string packed(text);
  std::erase(packed, ' ');
  return Parser(packed).Parse();
}

bool Constraint::Holds(const Postfix& of, const std::vector<std::string>& labels) {
  std::vector<bool> stack;
  for (const std::string& item : of) {
    if (item == "!") {
      stack.back() = !stack.back();
    } else if (item == "&" || item == "|") {
      const bool last = stack.back();
      stack.pop_back();
      stack.back() = item == "&" ? stack.back() && last : stack.back() || last;
    } else {
      stack.push_back(std::find(labels.begin(), labels.end(), item) != labels.end());
    }
  }
  return stack.back();
}

bool Constraint::Admits(const std::vector<std::string>& labels) const {
  return std::all_of(all_.begin(), all_.end(),
                     [&labels](const Postfix& one) { return Holds(one, labels); });
}

bool Constraint::Meets(std::size_t counted, const std::vector<std::string>& labels) const {
  return Holds(counted_[counted].first, labels);
}

Status CheckTexts(const NodeRequest& request) {
  for (const std::string* list : {&request.node_list, &request.exclude}) {
    if (!list->empty()) {
      const Result<std::vector<std::string>> names = base::ExpandNames(*list);
      if (!names.ok()) {
        return names.error();
      }
    }
  }
  if (!request.constraint.empty()) {
    const Result<Constraint> constraint = Constraint::Parse(request.constraint);
    if (!constraint.ok()) {
      return constraint.error();
    }
  }
  if (!request.licenses.empty()) {
    const Result<std::vector<License>> licenses = ParseLicenses(request.licenses);
    if (!licenses.ok()) {
      return licenses.error();
    }
  }
  return {};
}

}  // namespace trainyard::model
