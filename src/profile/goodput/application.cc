// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard::profile {
namespace {

constexpr std::string_view kPlacements = "placements.csv";
constexpr std::string_view kLarge = "throughput_over4nodes.csv.gz";
constexpr std::int64_t kMostPart = std::int64_t{1} << 40;
constexpr int kMostPlacedNodes = 4;  // of placements by name

// Where `folder` keeps its applications.
std::filesystem::path AppsOf(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path apps = std::filesystem::path(folder) / "apps";
  return std::filesystem::is_directory(apps, error) ? apps : std::filesystem::path(folder);
}

std::vector<std::filesystem::path> FoldersOfApps(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(AppsOf(folder), error), end;
       !error && entry != end; entry.increment(error)) {
    if (std::filesystem::exists(entry->path() / kPlacements, error)) {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The smallest of the texts that are this one begun at another place.
std::string SmallestRotation(const std::string& text) {
  std::string smallest = text;
  for (std::size_t i = 1; i < text.size(); ++i) {
    smallest = std::min(smallest, text.substr(i) + text.substr(0, i));
  }
  return smallest;
}

double Between(double at, double low, double high, double of_low, double of_high) {
  return low == high ? of_low : of_low + (at - low) / (high - low) * (of_high - of_low);
}

PassTimes Between(double at, double low, double high, const PassTimes& of_low,
                  const PassTimes& of_high) {
  return {.step = Between(at, low, high, of_low.step, of_high.step),
          .sync = Between(at, low, high, of_low.sync, of_high.sync)};
}

// The neighbours of a key in a map, both the same at its ends.
template <typename Map>
auto Neighbours(const Map& map, int key) {
  const auto above = map.lower_bound(key);
  if (above == map.end()) {
    return std::pair(std::prev(above), std::prev(above));
  }
  return std::pair(above->first == key || above == map.begin() ? above : std::prev(above), above);
}

Result<std::pair<std::int64_t, PassTimes>> ReadPass(const io::CsvRow& row) {
  const int step = row.Column("step_time");
  const int sync = row.Column("sync_time");
  ASSIGN_OR_RETURN(const std::int64_t part, row.Integer(row.Column("local_bsz"), 1, kMostPart));
  PassTimes times;
  ASSIGN_OR_RETURN(times.step, row.Positive(step));
  ASSIGN_OR_RETURN(times.sync, row.Number(sync, 0));
  if (times.sync >= times.step) {
    return row.Bad(sync, "less than step_time");
  }
  return std::pair(part, times);
}

}  // namespace

void PassCurve::Add(std::int64_t part, const PassTimes& times) {
  const auto at =
      std::lower_bound(points_.begin(), points_.end(), part,
                       [](const auto& point, std::int64_t value) { return point.first < value; });
  points_.insert(at, {part, times});
}

PassTimes PassCurve::At(double part) const {
  if (points_.size() == 1) {
    return points_.front().second;
  }
  auto above = std::lower_bound(
      points_.begin(), points_.end(), part,
      [](const auto& point, double value) { return static_cast<double>(point.first) < value; });
  if (above != points_.end() && static_cast<double>(above->first) == part) {
    return above->second;
  }
  above = std::clamp(above, points_.begin() + 1, points_.end() - 1);
  const auto below = above - 1;
  PassTimes times = Between(part, static_cast<double>(below->first),
                            static_cast<double>(above->first), below->second, above->second);
  // Lines that go on may end below what is possible.
  constexpr double kLeast = 1e-6;
  times.sync = std::max(times.sync, 0.0);
  times.step = std::max(times.step, times.sync + kLeast);
  return times;
}

Status Application::ReadPlacements(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int column, table.Require({"placement"}));
  struct Sum {
    PassTimes times;
    int count = 0;
  };
  std::map<std::tuple<int, int, std::int64_t>, Sum> sums;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    const std::string digits(row.Text(column));
    if (digits.empty() || digits.size() > kMostPlacedNodes ||
        digits.find_first_not_of("1234") != std::string::npos) {
      return row.Bad(column, "1 to 4 digits from 1 to 4: the GPUs on each node");
    }
    ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
    by_placement_[SmallestRotation(digits)].Add(pass.first, pass.second);
    const int gpus = std::accumulate(digits.begin(), digits.end(), 0,
                                     [](int sum, char digit) { return sum + (digit - '0'); });
    Sum& sum = sums[{static_cast<int>(digits.size()), gpus, pass.first}];
    sum.times.step += pass.second.step;
    sum.times.sync += pass.second.sync;
    ++sum.count;
    return {};
  }));
  if (sums.empty()) {
    return BadInput(path + ": no rows; expected a placement at least");
  }
  limits_.least_part = kMostPart;
  for (const auto& [key, sum] : sums) {
    const auto [nodes, gpus, part] = key;
    by_size_[nodes][gpus].Add(
        part, {.step = sum.times.step / sum.count, .sync = sum.times.sync / sum.count});
    limits_.least_part = std::min(limits_.least_part, part);
    limits_.most_part = std::max(limits_.most_part, part);
  }
  return {};
}

Status Application::ReadScalability(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int nodes_column, table.Require({"num_nodes"}));
  ASSIGN_OR_RETURN(const int gpus_column, table.Require({"num_replicas"}));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const std::int64_t nodes, row.Integer(nodes_column, 1, kMostNodes));
    ASSIGN_OR_RETURN(const std::int64_t gpus,
                     row.Integer(gpus_column, nodes, std::int64_t{kMostNodes} * kNodeGpus));
    ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
    by_size_[static_cast<int>(nodes)][static_cast<int>(gpus)].Add(pass.first, pass.second);
    return {};
  });
}

Status Application::ReadValidations(const std::string& folder) {
  std::error_code error;
  std::map<std::int64_t, std::string> files;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().stem().string();
    constexpr std::string_view kPrefix = "validation-";
    const std::optional<double> batch =
        file.starts_with(kPrefix) ? base::ToNumber(std::string_view(file).substr(kPrefix.size()))
                                  : std::nullopt;
    if (batch && *batch >= 1) {
      files[static_cast<std::int64_t>(*batch)] = entry->path().string();
    }
  }
  if (files.empty()) {
    return BadInput(folder + ": no validation-BATCH.csv; expected one for each batch size");
  }
  for (const auto& [batch, path] : files) {
    ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
    ASSIGN_OR_RETURN(const int progress, table.Require({"progress"}));
    ASSIGN_OR_RETURN(const int square, table.Require({"grad_sqr"}));
    ASSIGN_OR_RETURN(const int variance, table.Require({"grad_var"}));
    std::vector<GradientNoise>& noise = noise_[batch];
    std::vector<double> after{0};
    RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
      GradientNoise read;
      ASSIGN_OR_RETURN(const double done, row.Number(progress, 0));
      ASSIGN_OR_RETURN(read.square, row.Number(square, 0));
      ASSIGN_OR_RETURN(read.variance, row.Number(variance, 0));
      if (done <= after.back()) {
        return row.Bad(progress, "more than after the epoch before");
      }
      after.push_back(done);
      noise.push_back(read);
      return {};
    }));
    if (after.size() == 1 || (!progress_.empty() && after.size() != progress_.size())) {
      return BadInput(fmt::format(
          "{}: {} epochs; expected {}", path, after.size() - 1,
          progress_.empty() ? "one at least"
                            : std::to_string(progress_.size() - 1) + " as for the other batches"));
    }
    if (progress_.empty()) {
      progress_ = after;
    }
    std::transform(after.begin(), after.end(), progress_.begin(), progress_.begin(),
                   [](double a, double b) { return std::min(a, b); });
  }
  limits_.initial = files.begin()->first;
  limits_.most = files.rbegin()->first;
  return {};
}

Result<Application> Application::Read(const std::string& name, const std::string& folder) {
  Application read;
  read.name_ = name;
  RETURN_IF_ERROR(read.ReadPlacements(folder + "/" + std::string(kPlacements)));
  RETURN_IF_ERROR(read.ReadScalability(folder + "/scalability.csv"));
  RETURN_IF_ERROR(read.ReadValidations(folder));
  return read;
}

GradientNoise Application::NoiseAt(double batch, int epoch) const {
  const auto row = static_cast<std::size_t>(std::min(epoch, epochs() - 1));
  const auto above = std::find_if(noise_.begin(), noise_.end(), [batch](const auto& of_batch) {
    return static_cast<double>(of_batch.first) >= batch;
  });
  if (above == noise_.end()) {
    return noise_.rbegin()->second[row];
  }
  if (above == noise_.begin() || static_cast<double>(above->first) == batch) {
    return above->second[row];
  }
  const auto below = std::prev(above);
  const GradientNoise& low = below->second[row];
  const GradientNoise& high = above->second[row];
  const auto from = static_cast<double>(below->first);
  const auto to = static_cast<double>(above->first);
  return {.square = Between(batch, from, to, low.square, high.square),
          .variance = Between(batch, from, to, low.variance, high.variance)};
}

PassTimes Application::Interpolated(int nodes, int gpus, double part) const {
  const auto on = [&](const std::map<int, PassCurve>& by_gpus) {
    const auto [fewer, more] = Neighbours(by_gpus, gpus);
    return Between(gpus, fewer->first, more->first, fewer->second.At(part), more->second.At(part));
  };
  const auto [fewer, more] = Neighbours(by_size_, nodes);
  return Between(nodes, fewer->first, more->first, on(fewer->second), on(more->second));
}

PassTimes Application::TimesOn(const Placement& placement, std::int64_t part) const {
  std::string digits;
  int gpus = 0;
  for (int on_node : placement) {
    gpus += on_node;
    for (; on_node > kNodeGpus; on_node -= kNodeGpus) {
      digits += '4';
    }
    if (on_node > 0) {
      digits += static_cast<char>('0' + on_node);
    }
  }
  CHECK(gpus > 0);
  if (const auto placed = by_placement_.find(SmallestRotation(digits));
      placed != by_placement_.end()) {
    return placed->second.At(static_cast<double>(part));
  }
  const int nodes = std::min(static_cast<int>(digits.size()), kMostNodes);
  if (const auto large = large_.find({nodes, gpus});
      large != large_.end() && part >= large->second.least() && part <= large->second.most()) {
    return large->second.At(static_cast<double>(part));
  }
  return Interpolated(nodes, gpus, static_cast<double>(part));
}

bool Applications::AreAt(const std::string& folder) {
  return !folder.empty() && !FoldersOfApps(folder).empty();
}

BatchLimits LimitsUnder(const TrainingRules& rules, const Application& application) {
  BatchLimits limits = application.limits();
  if (const int most = rules.Of(application.name()).most_part; most > 0) {
    limits.most_part = std::min<std::int64_t>(limits.most_part, most);
  }
  return limits;
}

Status Applications::ReadLarge(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int name, table.Require({"application"}));
  ASSIGN_OR_RETURN(const int nodes_column, table.Require({"num_nodes"}));
  ASSIGN_OR_RETURN(const int gpus_column, table.Require({"num_replicas"}));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    const int found = Find(row.Text(name));
    if (found < 0) {
      return {};  // of no use
    }
    ASSIGN_OR_RETURN(const std::int64_t nodes,
                     row.Integer(nodes_column, 1, Application::kMostNodes));
    ASSIGN_OR_RETURN(const std::int64_t gpus,
                     row.Integer(gpus_column, nodes, nodes * Application::kNodeGpus));
    ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
    applications_[static_cast<std::size_t>(found)].AddLarge(
        static_cast<int>(nodes), static_cast<int>(gpus), pass.first, pass.second);
    return {};
  });
}

Result<Applications> Applications::Read(const std::string& folder) {
  Applications read;
  for (const std::filesystem::path& path : FoldersOfApps(folder)) {
    ASSIGN_OR_RETURN(Application one, Application::Read(path.filename().string(), path.string()));
    read.applications_.push_back(std::move(one));
  }
  const std::filesystem::path large = AppsOf(folder).parent_path() / kLarge;
  if (std::error_code error; std::filesystem::exists(large, error)) {
    RETURN_IF_ERROR(read.ReadLarge(large.string()));
  }
  return read;
}

int Applications::Find(std::string_view name) const {
  const auto found = std::find_if(applications_.begin(), applications_.end(),
                                  [name](const Application& one) { return one.name() == name; });
  return found == applications_.end() ? -1 : static_cast<int>(found - applications_.begin());
}

}  // namespace trainyard::profile
