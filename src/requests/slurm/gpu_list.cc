// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/gpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "model/job_fields.h"

namespace trainyard::requests {
namespace {

// Names of generic resources that sites have beside GPUs. In --gpus no other word tells them from
// types of GPUs.
constexpr std::array<std::string_view, 17> kOthers{
    "bandwidth",    "craynetwork", "disk", "fpga",    "localtmp", "lscratch",
    "localscratch", "mic",         "mps",  "nic",     "nvme",     "scratch",
    "shard",        "ssd",         "tmp",  "tmpdisk", "tmpfs"};

bool IsOther(std::string_view name) {
  return std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

// At the commas outside of brackets.
std::vector<std::string_view> ItemsOf(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] == ',' && depth <= 0) {
      items.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  items.push_back(text.substr(begin));
  return items;
}

bool IsCount(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

class Reader {
 public:
  // `type_alone`: a type without a number is one GPU of it.
  Reader(const char* form, bool type_alone) : form_(form), type_alone_(type_alone) {}

  // "a100:2(S:0-1)", "2", "a100"
  Status TakeGpus(std::string_view item) {
    const std::size_t bracket = item.find('(');
    if (bracket != std::string_view::npos) {
      if (!item.ends_with(')')) {
        return Bad(fmt::format("'{}' has a bracket without end", item));
      }
      list_.others.emplace_back(item.substr(bracket));
      item = item.substr(0, bracket);
    }
    const std::size_t colon = item.find(':');
    const std::string_view last = colon == std::string_view::npos ? item : item.substr(colon + 1);
    const bool has_type = colon != std::string_view::npos || (type_alone_ && !IsCount(last));
    const std::string_view type = colon != std::string_view::npos ? item.substr(0, colon)
                                  : has_type                      ? item
                                                                  : "";
    const std::string_view count = colon == std::string_view::npos && has_type ? "1" : last;
    const std::optional<double> number =
        IsCount(count) ? base::ToNumber(count) : std::optional<double>();
    if (!number || *number < 0 || *number > static_cast<double>(model::kMostGpus)) {
      return Bad(fmt::format("'{}' is no number", count));
    }
    if (has_type && (type.empty() || base::ToNumber(type))) {
      return Bad(fmt::format("'{}' is no type of GPU", type));
    }
    if (is_there_) {
      return Bad(list_.type == type ? "GPUs are there twice"
                                    : "a job has GPUs of one type here, and these are of several");
    }
    is_there_ = true;
    list_.count = static_cast<std::int64_t>(*number);
    list_.type = type;
    return {};
  }
  void TakeOther(std::string_view item) { list_.others.emplace_back(item); }

  [[nodiscard]] Result<GpuList> Take() {
    return is_there_ ? Result<GpuList>(std::move(list_)) : Bad("no GPUs");
  }
  [[nodiscard]] Error Bad(std::string_view what) const {
    return InvalidArgument(fmt::format("{}; expected {}", what, form_));
  }

 private:
  const char* form_;
  bool type_alone_;
  GpuList list_;
  bool is_there_ = false;
};

}  // namespace

Result<GpuList> ReadGres(std::string_view text) {
  Reader reader("gpu:N or gpu:TYPE:N, with other resources behind a comma", true);
  for (std::string_view item : ItemsOf(text)) {
    for (const std::string_view prefix : {"gres:", "gres/"}) {
      item.remove_prefix(item.starts_with(prefix) ? prefix.size() : 0);
    }
    const std::string_view name = item.substr(0, item.find_first_of(":("));
    if (name.empty()) {
      return reader.Bad(fmt::format("'{}' has no name", item));
    }
    if (name != "gpu") {
      reader.TakeOther(item);
      continue;
    }
    std::string_view rest = item.substr(name.size());
    const bool has_more = rest.starts_with(':');
    rest.remove_prefix(has_more ? 1 : 0);
    RETURN_IF_ERROR(reader.TakeGpus(has_more ? std::string(rest) : "1" + std::string(rest)));
  }
  return reader.Take();
}

Result<GpuList> ReadGpus(std::string_view text) {
  Reader reader("N or TYPE:N", false);
  for (const std::string_view item : ItemsOf(text)) {
    if (IsOther(item.substr(0, item.find_first_of(":(")))) {
      reader.TakeOther(item);
    } else {
      RETURN_IF_ERROR(reader.TakeGpus(item));
    }
  }
  return reader.Take();
}

}  // namespace trainyard::requests
