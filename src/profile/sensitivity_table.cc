// SPDX-License-Identifier: Apache-2.0
#include "profile/sensitivity_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "profile/throughput_table.h"

namespace trainyard::profile {
namespace {

constexpr std::string_view kProfiles = "model_profiles.csv";
constexpr std::string_view kMatrix = "throughput_matrix.csv";
constexpr double kMostAmount = 1e9;

// (ratio, model, gpus)
using ProfileKey = std::tuple<double, std::string, int>;
using ProfileMap = std::map<ProfileKey, SensitivityProfile>;

Result<double> Amount(const io::CsvRow& row, int column) {
  Result<double> read = row.Positive(column);
  if (!read.ok() || read.value() > kMostAmount) {
    return row.Bad(column, "a number > 0 and <= 1000000000");
  }
  return read;
}

Result<ProfileKey> ReadKey(const io::CsvRow& row, int ratio, int model, int gpus) {
  ASSIGN_OR_RETURN(const double read_ratio, Amount(row, ratio));
  if (row.Text(model).empty()) {
    return row.Bad(model, "the name of a model");
  }
  ASSIGN_OR_RETURN(const std::int64_t read_gpus, row.Integer(gpus, 1, kMostProfiledGpus));
  return ProfileKey{read_ratio, std::string(row.Text(model)), static_cast<int>(read_gpus)};
}

// ---------------------------------------------------------------------------------- profiles

class ProfileReader {
 public:
  explicit ProfileReader(const io::CsvTable& table) : table_(table) {}

  Result<ProfileMap> Read() {
    RETURN_IF_ERROR(FindColumns());
    RETURN_IF_ERROR(table_.ForEach([this](const io::CsvRow& row) { return AddRow(row); }));
    if (map_.empty()) {
      return BadInput(table_.path() + ": no rows; expected a profile at least");
    }
    return std::move(map_);
  }

 private:
  static constexpr std::array<std::string_view, 9> kNeeded{
      "cpu_per_gpu_ratio",   "model",      "gpus",    "best_cpus_per_gpu", "best_mem_gb_per_gpu",
      "best_sspeed_per_gpu", "batch_size", "speedup", "iter_time_s"};
  // What is there for people, or is 1 for all models.
  static constexpr std::array<std::string_view, 6> kOptional{
      "task",      "class_id", "used_by_simulator", "placement_penalty", "iter_time_base_s",
      "tput_shape"};

  Status FindColumns() const {
    std::vector<std::string_view> known(kNeeded.begin(), kNeeded.end());
    known.insert(known.end(), kOptional.begin(), kOptional.end());
    RETURN_IF_ERROR(table_.CheckKnown(known));
    for (const std::string_view name : kNeeded) {
      RETURN_IF_ERROR(table_.Require({name}));
    }
    return {};
  }

  Status ReadAmounts(const io::CsvRow& row, SensitivityProfile& profile) const {
    for (const auto& [name, target] : {std::pair{"best_cpus_per_gpu", &profile.best_cpus},
                                       std::pair{"best_mem_gb_per_gpu", &profile.best_memory_gb},
                                       std::pair{"speedup", &profile.speedup},
                                       std::pair{"iter_time_s", &profile.iteration_seconds}}) {
      ASSIGN_OR_RETURN(*target, Amount(row, row.Column(name)));
    }
    ASSIGN_OR_RETURN(profile.best_storage_mbps,
                     row.Number(row.Column("best_sspeed_per_gpu"), 0, kMostAmount));
    if (profile.speedup < 1) {
      return row.Bad(row.Column("speedup"), "a number >= 1");
    }
    return {};
  }

  Status ReadNumbers(const io::CsvRow& row, SensitivityProfile& profile) const {
    ASSIGN_OR_RETURN(profile.batch_size, row.Integer(row.Column("batch_size"), 1));
    if (const int column = row.Column("class_id"); !row.Text(column).empty()) {
      const Result<std::int64_t> number = row.Integer(column, 0);
      if (!number.ok() || number.value() > kMostProfiledGpus) {
        return row.Bad(column, "an integer >= 0, or nothing");
      }
      profile.number = static_cast<int>(number.value());
    }
    return {};
  }

  Status AddRow(const io::CsvRow& row) {
    ASSIGN_OR_RETURN(ProfileKey key, ReadKey(row, row.Column("cpu_per_gpu_ratio"),
                                             row.Column("model"), row.Column("gpus")));
    SensitivityProfile profile{.ratio = std::get<0>(key),
                               .model = std::get<1>(key),
                               .gpus = std::get<2>(key),
                               .family = std::string(row.Text(row.Column("task"))),
                               .published = row.Text(row.Column("used_by_simulator")) == "1"};
    RETURN_IF_ERROR(ReadAmounts(row, profile));
    RETURN_IF_ERROR(ReadNumbers(row, profile));
    const std::string model = profile.model;
    if (!map_.emplace(std::move(key), std::move(profile)).second) {
      return row.BadRow(
          fmt::format("'{}' with this ratio and number of GPUs is there twice; expected one row "
                      "for each",
                      model));
    }
    return {};
  }

  const io::CsvTable& table_;
  ProfileMap map_;
};

// -------------------------------------------------------------------------------------- grids

// "mem_62.5_gb"
std::optional<double> MemoryOf(std::string_view name) {
  constexpr std::string_view kBegin = "mem_";
  constexpr std::string_view kEnd = "_gb";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) ||
      name.size() <= kBegin.size() + kEnd.size()) {
    return std::nullopt;
  }
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  return base::ToNumber(name);
}

class GridReader {
 public:
  GridReader(const io::CsvTable& table, ProfileMap& profiles)
      : table_(table), profiles_(profiles) {}

  Status Read() {
    RETURN_IF_ERROR(FindColumns());
    return table_.ForEach([this](const io::CsvRow& row) { return AddRow(row); });
  }

 private:
  static constexpr std::array<std::string_view, 4> kKeys{"cpu_per_gpu_ratio", "model", "gpus",
                                                         "cpus_per_gpu"};

  Status FindColumns() {
    const std::span<const std::string> header = table_.header();
    if (!std::equal(
            kKeys.begin(), kKeys.end(), header.begin(),
            header.begin() + static_cast<std::ptrdiff_t>(std::min(kKeys.size(), header.size())))) {
      return table_.BadHeader(
          fmt::format("expected the columns {} and one mem_<GB>_gb for each amount of memory",
                      base::Join(kKeys, ", ")));
    }
    for (const std::string& name : header.subspan(kKeys.size())) {
      const std::optional<double> memory = MemoryOf(name);
      if (!memory || *memory <= 0 || (!memory_.empty() && *memory <= memory_.back())) {
        return table_.BadHeader(fmt::format(
            "column '{}'; expected mem_<GB>_gb with ascending amounts of memory", name));
      }
      memory_.push_back(*memory);
    }
    if (memory_.empty()) {
      return table_.BadHeader("no column mem_<GB>_gb; expected one at least");
    }
    return {};
  }

  Status AddRow(const io::CsvRow& row) {
    ASSIGN_OR_RETURN(const ProfileKey key, ReadKey(row, 0, 1, 2));
    const auto profile = profiles_.find(key);
    if (profile == profiles_.end()) {
      return row.BadRow(
          fmt::format("'{}' with this ratio and number of GPUs has no row in {}; "
                      "expected one",
                      std::get<1>(key), kProfiles));
    }
    SensitivityGrid& grid = profile->second.grid;
    ASSIGN_OR_RETURN(const double cpus, Amount(row, 3));
    if (!grid.cpus.empty() && cpus <= grid.cpus.back()) {
      return row.Bad(3, "more CPUs than in the row before");
    }
    grid.memory_gb = memory_;
    grid.cpus.push_back(cpus);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      ASSIGN_OR_RETURN(const double value, Amount(row, static_cast<int>(kKeys.size() + i)));
      grid.values.push_back(value);
    }
    return {};
  }

  const io::CsvTable& table_;
  ProfileMap& profiles_;
  std::vector<double> memory_;
};

// Where a value lies between two points of an axis.
struct Between {
  std::size_t low = 0;
  std::size_t high = 0;
  double share = 0;  // of the higher one
};

Between Find(const std::vector<double>& axis, double value) {
  const auto above = std::lower_bound(axis.begin(), axis.end(), value);
  if (above == axis.begin()) {
    return {};
  }
  const auto last = static_cast<std::size_t>(above - axis.begin());
  if (above == axis.end() || *above == value) {
    const std::size_t at = above == axis.end() ? axis.size() - 1 : last;
    return {.low = at, .high = at};
  }
  return {.low = last - 1,
          .high = last,
          .share = (value - axis[last - 1]) / (axis[last] - axis[last - 1])};
}

}  // namespace

double SensitivityGrid::At(double cpus_per_gpu, double memory_gb_per_gpu) const {
  CHECK(!empty());
  const Between row = Find(cpus, cpus_per_gpu);
  const Between column = Find(memory_gb, memory_gb_per_gpu);
  const auto along = [&](std::size_t at) {
    const double low = Value(at, column.low);
    return low + column.share * (Value(at, column.high) - low);
  };
  const double low = along(row.low);
  return low + row.share * (along(row.high) - low);
}

bool SensitivityTable::IsAt(const std::string& folder) {
  std::error_code code;
  return std::filesystem::exists(std::filesystem::path(folder) / kProfiles, code);
}

Result<SensitivityTable> SensitivityTable::Read(const std::string& folder) {
  const std::filesystem::path at(folder);
  ASSIGN_OR_RETURN(const io::CsvTable rows, io::CsvTable::Open((at / kProfiles).string()));
  ASSIGN_OR_RETURN(ProfileMap profiles, ProfileReader(rows).Read());
  std::error_code code;
  if (std::filesystem::exists(at / kMatrix, code)) {
    ASSIGN_OR_RETURN(const io::CsvTable cells, io::CsvTable::Open((at / kMatrix).string()));
    RETURN_IF_ERROR(GridReader(cells, profiles).Read());
  }
  SensitivityTable table;
  for (auto& [key, profile] : profiles) {
    if (table.ratios_.empty() || table.ratios_.back() != profile.ratio) {
      table.ratios_.push_back(profile.ratio);
    }
    table.profiles_.push_back(std::move(profile));
  }
  return table;
}

const SensitivityProfile* SensitivityTable::Find(std::string_view model, double ratio) const {
  using Key = std::tuple<double, std::string_view, int>;
  const Key key(ratio, model, 1);
  const auto found = std::lower_bound(
      profiles_.begin(), profiles_.end(), key,
      [](const SensitivityProfile& a, const Key& b) { return Key(a.ratio, a.model, a.gpus) < b; });
  const bool there = found != profiles_.end() && found->ratio == ratio && found->model == model &&
                     found->gpus == 1;
  return there ? &*found : nullptr;
}

std::vector<std::string_view> SensitivityTable::models() const {
  std::set<std::string_view> names;
  for (const SensitivityProfile& profile : profiles_) {
    names.insert(profile.model);
  }
  return {names.begin(), names.end()};
}

}  // namespace trainyard::profile
