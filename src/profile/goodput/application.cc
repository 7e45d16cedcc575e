// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard::profile {
namespace {

constexpr std::string_view kPlacements = "placements.csv";
constexpr std::string_view kLarge = "throughput_over4nodes.csv.gz";
constexpr std::int64_t kMostPart = std::int64_t{1} << 40;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 50;
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

// The path of a table of all applications and types, packed or not; empty: there is none.
std::string TypedTable(const std::string& folder, const std::string& name) {
  for (const char* const ending : {".csv", ".csv.gz"}) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::path(folder) / (name + ending);
    if (std::filesystem::is_regular_file(path, error)) {
      return path.string();
    }
  }
  return {};
}

bool HasTypedTables(const std::string& folder) {
  return !TypedTable(folder, "placements").empty() && !TypedTable(folder, "validation").empty();
}

double Between(double at, double low, double high, double of_low, double of_high) {
  return low == high ? of_low : of_low + (at - low) / (high - low) * (of_high - of_low);
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

Status ReadPlaced(const io::CsvRow& row, PassTable& into) {
  const int column = row.Column("placement");
  const std::string digits(row.Text(column));
  if (digits.empty() || digits.size() > kMostPlacedNodes ||
      digits.find_first_not_of("1234") != std::string::npos) {
    return row.Bad(column, "1 to 4 digits from 1 to 4: the GPUs on each node");
  }
  ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
  into.AddPlaced(digits, pass.first, pass.second);
  return {};
}

Status ReadSized(const io::CsvRow& row, int node_gpus, PassTable& into) {
  ASSIGN_OR_RETURN(const std::int64_t nodes,
                   row.Integer(row.Column("num_nodes"), 1, PassTable::kMostNodes));
  ASSIGN_OR_RETURN(const std::int64_t gpus,
                   row.Integer(row.Column("num_replicas"), nodes,
                               std::int64_t{PassTable::kMostNodes} * node_gpus));
  ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
  into.AddSized(static_cast<int>(nodes), static_cast<int>(gpus), pass.first, pass.second);
  return {};
}

Status ReadPlacements(const std::string& path, Application& into) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  RETURN_IF_ERROR(table.Require({"placement"}));
  PassTable& passes = into.TableOf("");
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) { return ReadPlaced(row, passes); }));
  return passes.empty() ? Status(BadInput(path + ": no rows; expected a placement at least"))
                        : Status();
}

Status ReadScalability(const std::string& path, Application& into) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  RETURN_IF_ERROR(table.Require({"num_nodes"}));
  RETURN_IF_ERROR(table.Require({"num_replicas"}));
  return table.ForEach([&](const io::CsvRow& row) {
    return ReadSized(row, Application::kNodeGpus, into.TableOf(""));
  });
}

Status ReadValidations(const std::string& folder, Application& into) {
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
  std::size_t epochs = 0;
  for (const auto& [batch, path] : files) {
    ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
    ASSIGN_OR_RETURN(const int progress, table.Require({"progress"}));
    ASSIGN_OR_RETURN(const int square, table.Require({"grad_sqr"}));
    ASSIGN_OR_RETURN(const int variance, table.Require({"grad_var"}));
    double last = 0;
    std::size_t rows = 0;
    RETURN_IF_ERROR(table.ForEach([&, of = batch](const io::CsvRow& row) -> Status {
      GradientNoise read;
      ASSIGN_OR_RETURN(const double done, row.Number(progress, 0));
      ASSIGN_OR_RETURN(read.square, row.Number(square, 0));
      ASSIGN_OR_RETURN(read.variance, row.Number(variance, 0));
      if (done <= last) {
        return row.Bad(progress, "more than after the epoch before");
      }
      last = done;
      ++rows;
      into.AddEpoch(of, done, read);
      return {};
    }));
    if (rows == 0 || (epochs != 0 && rows != epochs)) {
      return BadInput(fmt::format(
          "{}: {} epochs; expected {}", path, rows,
          epochs == 0 ? "one at least" : std::to_string(epochs) + " as for the other batches"));
    }
    epochs = rows;
  }
  return {};
}

}  // namespace

Result<Application> Application::Read(const std::string& name, const std::string& folder) {
  Application read(name);
  RETURN_IF_ERROR(ReadPlacements(folder + "/" + std::string(kPlacements), read));
  RETURN_IF_ERROR(ReadScalability(folder + "/scalability.csv", read));
  RETURN_IF_ERROR(ReadValidations(folder, read));
  RETURN_IF_ERROR(read.Close(folder));
  return read;
}

bool Application::RunsOn(std::string_view gpu_type) const {
  return !has_types() || gpu_type.empty() || tables_.contains(gpu_type);
}

const PassTable& Application::On(std::string_view gpu_type) const {
  const auto found = tables_.find(has_types() ? gpu_type : std::string_view());
  return found == tables_.end() ? tables_.find(types_.front())->second : found->second;
}

BatchLimits Application::limits(std::string_view gpu_type) const {
  const PassTable& table = On(gpu_type);
  return {.initial = batches_.begin()->first,
          .most = batches_.rbegin()->first,
          .least_part = table.least_part(),
          .most_part = table.most_part()};
}

PassTable& Application::TableOf(const std::string& gpu_type) {
  const auto [table, is_new] = tables_.try_emplace(gpu_type);
  if (is_new) {
    types_.push_back(gpu_type);
  }
  return table->second;
}

void Application::AddEpoch(std::int64_t batch, double progress, const GradientNoise& noise) {
  Epochs& epochs = batches_[batch];
  epochs.progress.push_back(progress);
  epochs.noise.push_back(noise);
}

Status Application::Close(const std::string& where) {
  if (tables_.empty() || batches_.empty()) {
    return BadInput(fmt::format("{}: application {} has no {}; expected some", where, name_,
                                tables_.empty() ? "placements" : "epochs"));
  }
  for (auto& [type, table] : tables_) {
    if (table.empty()) {
      return BadInput(
          fmt::format("{}: application {} has no placements on type '{}'; expected "
                      "some beside its scalability",
                      where, name_, type));
    }
    table.Close();
  }
  const std::size_t epochs = batches_.begin()->second.progress.size();
  progress_.assign(epochs + 1, 0);
  for (const auto& [batch, of_batch] : batches_) {
    const std::vector<double>& progress = of_batch.progress;
    if (progress.size() != epochs ||
        std::adjacent_find(progress.begin(), progress.end(), std::greater_equal<>()) !=
            progress.end() ||
        progress.front() <= 0) {
      return BadInput(
          fmt::format("{}: application {} with batch {}: expected {} epochs as for the "
                      "other batches, and growing progress",
                      where, name_, batch, epochs));
    }
    for (std::size_t i = 0; i < epochs; ++i) {
      progress_[i + 1] =
          progress_[i + 1] == 0 ? progress[i] : std::min(progress_[i + 1], progress[i]);
    }
  }
  return {};
}

GradientNoise Application::NoiseAt(double batch, int epoch) const {
  const auto row = static_cast<std::size_t>(std::min(epoch, epochs() - 1));
  const auto above = std::find_if(batches_.begin(), batches_.end(), [batch](const auto& of_batch) {
    return static_cast<double>(of_batch.first) >= batch;
  });
  if (above == batches_.end()) {
    return batches_.rbegin()->second.noise[row];
  }
  if (above == batches_.begin() || static_cast<double>(above->first) == batch) {
    return above->second.noise[row];
  }
  const auto below = std::prev(above);
  const GradientNoise& low = below->second.noise[row];
  const GradientNoise& high = above->second.noise[row];
  const auto from = static_cast<double>(below->first);
  const auto to = static_cast<double>(above->first);
  return {.square = Between(batch, from, to, low.square, high.square),
          .variance = Between(batch, from, to, low.variance, high.variance)};
}

BatchLimits LimitsUnder(const TrainingRules& rules, const Application& application,
                        std::string_view gpu_type) {
  BatchLimits limits = application.limits(gpu_type);
  for (const std::string& name :
       {application.name(), application.name() + "." + std::string(gpu_type)}) {
    if (const int most = rules.Of(name).most_part; most > 0) {
      limits.most_part = std::min<std::int64_t>(limits.most_part, most);
    }
  }
  return limits;
}

bool Applications::AreAt(const std::string& folder) {
  return !folder.empty() && (!FoldersOfApps(folder).empty() || HasTypedTables(folder));
}

Application& Applications::Add(std::string_view name) {
  const int found = Find(name);
  return found >= 0 ? applications_[static_cast<std::size_t>(found)]
                    : applications_.emplace_back(std::string(name));
}

Status Applications::ReadLarge(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int name, table.Require({"application"}));
  ASSIGN_OR_RETURN(const int nodes_column, table.Require({"num_nodes"}));
  ASSIGN_OR_RETURN(const int gpus_column, table.Require({"num_replicas"}));
  const int type = table.Column({"gpu_type"});
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    const int found = Find(row.Text(name));
    if (found < 0) {
      return {};  // of no use
    }
    Application& application = applications_[static_cast<std::size_t>(found)];
    if (application.has_types() && (type < 0 || !application.RunsOn(row.Text(type)))) {
      return {};
    }
    ASSIGN_OR_RETURN(const std::int64_t nodes,
                     row.Integer(nodes_column, 1, Application::kMostNodes));
    ASSIGN_OR_RETURN(const std::int64_t gpus,
                     row.Integer(gpus_column, nodes, nodes * PassTable::kMostDigit));
    ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
    application.TableOf(application.has_types() ? std::string(row.Text(type)) : "")
        .AddLarge(static_cast<int>(nodes), static_cast<int>(gpus), pass.first, pass.second);
    return {};
  });
}

// Placements with a column gpu_type. An application whose averaging is no part of a pass, but takes
// longer (that of pipelined trainings), is left out.
Status Applications::ReadTypedPlacements(const std::string& path) {
  std::set<std::string, std::less<>> others;
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int name, table.Require({"application"}));
  ASSIGN_OR_RETURN(const int type, table.Require({"gpu_type"}));
  ASSIGN_OR_RETURN(const int digits_column, table.Require({"placement"}));
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    const std::string_view digits = row.Text(digits_column);
    if (digits.empty() || digits.find_first_not_of("123456789") != std::string_view::npos) {
      return row.Bad(digits_column, "digits from 1 to 9: the GPUs on each node");
    }
    if (row.Text(type).empty()) {
      return row.Bad(type, "a type of GPU");
    }
    ASSIGN_OR_RETURN(const double step, row.Positive(row.Column("step_time")));
    ASSIGN_OR_RETURN(const double sync, row.Number(row.Column("sync_time"), 0));
    if (sync >= step) {
      others.emplace(row.Text(name));
    }
    return {};
  }));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    if (others.contains(row.Text(name))) {
      return {};
    }
    ASSIGN_OR_RETURN(const auto pass, ReadPass(row));
    Add(row.Text(name))
        .TableOf(std::string(row.Text(type)))
        .AddPlaced(std::string(row.Text(digits_column)), pass.first, pass.second);
    return {};
  });
}

Status Applications::ReadTypedSizes(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int name, table.Require({"application"}));
  ASSIGN_OR_RETURN(const int type, table.Require({"gpu_type"}));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    const int found = Find(row.Text(name));
    return found < 0 ? Status()
                     : ReadSized(row, PassTable::kMostDigit,
                                 applications_[static_cast<std::size_t>(found)].TableOf(
                                     std::string(row.Text(type))));
  });
}

Status Applications::ReadTypedEpochs(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int name, table.Require({"application"}));
  ASSIGN_OR_RETURN(const int batch_column, table.Require({"batch_size"}));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    const int found = Find(row.Text(name));
    if (found < 0) {
      return {};
    }
    GradientNoise noise;
    ASSIGN_OR_RETURN(const std::int64_t batch, row.Integer(batch_column, 1, kMostBatch));
    ASSIGN_OR_RETURN(const double progress, row.Positive(row.Column("progress")));
    ASSIGN_OR_RETURN(noise.square, row.Number(row.Column("grad_sqr"), 0));
    ASSIGN_OR_RETURN(noise.variance, row.Number(row.Column("grad_var"), 0));
    applications_[static_cast<std::size_t>(found)].AddEpoch(batch, progress, noise);
    return {};
  });
}

Status Applications::ReadTyped(const std::string& folder) {
  RETURN_IF_ERROR(ReadTypedPlacements(TypedTable(folder, "placements")));
  if (const std::string sizes = TypedTable(folder, "scalability"); !sizes.empty()) {
    RETURN_IF_ERROR(ReadTypedSizes(sizes));
  }
  RETURN_IF_ERROR(ReadTypedEpochs(TypedTable(folder, "validation")));
  for (Application& one : applications_) {
    RETURN_IF_ERROR(one.Close(folder));
  }
  return {};
}

Result<Applications> Applications::Read(const std::string& folder) {
  Applications read;
  const std::vector<std::filesystem::path> folders = FoldersOfApps(folder);
  if (folders.empty()) {
    RETURN_IF_ERROR(read.ReadTyped(folder));
  }
  for (const std::filesystem::path& path : folders) {
    ASSIGN_OR_RETURN(Application one, Application::Read(path.filename().string(), path.string()));
    read.applications_.push_back(std::move(one));
  }
  const std::filesystem::path large =
      (folders.empty() ? std::filesystem::path(folder) : AppsOf(folder).parent_path()) / kLarge;
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
