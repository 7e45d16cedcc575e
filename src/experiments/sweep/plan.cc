// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/try.h"
#include "io/file.h"
#include "io/sha256.h"
#include "results/write/output.h"
#include "trace/clusters/cluster_file.h"
#include "trainyard/version.h"

namespace trainyard::experiments {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Fields one after the other; none can be taken for a part of another.
class FieldDigest {
 public:
  FieldDigest& Add(std::string_view name, std::string_view value) {
    sha_.Update(fmt::format("{}:{}={}:", name.size(), name, value.size()));
    sha_.Update(value);
    return *this;
  }
  [[nodiscard]] std::string Hex() const { return sha_.Hex(); }

 private:
  io::Sha256 sha_;
};

// Digests of files and folders, each read once.
class ContentDigests {
 public:
  // A folder: the names and contents of all files in it and below.
  Result<std::string> Of(const std::string& path) {
    const auto [known, is_new] = known_.try_emplace(path, std::string());
    if (is_new) {
      std::error_code ignored;
      known->second = fs::is_directory(path, ignored) ? OfFolder(path) : io::Sha256OfFile(path);
    }
    return known->second;
  }

 private:
  static Result<std::string> OfFolder(const std::string& path) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error)) {
      if (at->is_regular_file(error)) {
        files.push_back(at->path().string());
      }
    }
    if (error) {
      return Failed(fmt::format("{}: cannot be read: {}", path, error.message()));
    }
    std::sort(files.begin(), files.end());
    FieldDigest digest;
    for (const std::string& file : files) {
      ASSIGN_OR_RETURN(const std::string content, io::Sha256OfFile(file));
      digest.Add(fs::path(file).lexically_relative(path).string(), content);
    }
    return digest.Hex();
  }

  std::map<std::string, Result<std::string>> known_;
};

// "cluster.xml:gpus=4" names a file and options for it; "16x8" names none.
std::string FileOfCluster(const std::string& spec) {
  const std::size_t xml = spec.find(".xml:");
  const std::string path = xml == std::string::npos ? spec : spec.substr(0, xml + 4);
  return trace::IsShortForm(spec) ? "" : path;
}

class Planner {
 public:
  Planner(const std::string& reference, const PlanOptions& options)
      : reference_(reference), options_(options) {}

  PlannedCell Plan(const Cell& cell) {
    PlannedCell planned{.cell = &cell, .inputs = {}, .digest = {}, .outcome = {}};
    if (IsMissing(cell, planned.outcome)) {
      return planned;
    }
    const Status status = SetInputs(cell, planned);
    if (!status.ok()) {
      planned.outcome = {.status = CellStatus::kFailed, .reason = status.error().message};
      planned.digest.clear();
    }
    return planned;
  }

 private:
  [[nodiscard]] bool IsInReference(const std::string& path) const {
    return !reference_.empty() && path.starts_with(reference_);
  }

  // A missing file that the user may not have is no mistake; another is found when it is read.
  bool IsMissing(const Cell& cell, CellOutcome& outcome) const {
    const auto missing = [&](std::string_view what, const std::string& path,
                             const std::string& obtain) {
      if (path.empty() || Exists(path) || (obtain.empty() && !IsInReference(path))) {
        return false;
      }
      outcome = {.status = CellStatus::kNotRun,
                 .reason = fmt::format("missing {} {}{}{}", what, path, obtain.empty() ? "" : ": ",
                                       obtain)};
      return true;
    };
    for (const auto& [key, value] : cell.trace.generate) {
      if ((key == "profiles" || key == "pool") && missing(key, value, cell.trace.obtain)) {
        return true;
      }
    }
    return missing("trace", cell.trace.path, cell.trace.obtain) ||
           missing("cluster", FileOfCluster(cell.cluster), "") ||
           missing("profiles", cell.profiles, "");
  }

  Status SetInputs(const Cell& cell, PlannedCell& planned) {
    ASSIGN_OR_RETURN(const double unit,
                     cell.trace.time_unit > 0 ? cell.trace.time_unit : UnitOf(cell.names.preset));
    ASSIGN_OR_RETURN(const std::string trace,
                     cell.trace.generate.empty() ? cell.trace.path : Generated(cell));
    planned.inputs = {.trace = trace,
                      .format = cell.trace.format,
                      .cluster = cell.cluster,
                      .profiles = cell.profiles,
                      .skip_bad_rows = cell.trace.skip_bad_rows,
                      .at_once = cell.trace.at_once,
                      .time_unit = unit,
                      .columns = cell.trace.map};
    return SetDigest(planned);
  }

  Result<double> UnitOf(const std::string& preset) {
    const auto [known, is_new] = units_.try_emplace(preset, 0.0);
    if (is_new) {
      known->second = scenario::TraceUnit(preset);
    }
    return known->second;
  }

  Status SetDigest(PlannedCell& planned) {
    const Cell& cell = *planned.cell;
    ASSIGN_OR_RETURN(const std::string preset, scenario::PresetContent(cell.names.preset));
    FieldDigest digest;
    digest.Add("version", TRAINYARD_VERSION);
    for (const std::string& path :
         {planned.inputs.trace, FileOfCluster(cell.cluster), cell.profiles}) {
      ASSIGN_OR_RETURN(const std::string content,
                       path.empty() ? Result<std::string>("") : contents_.Of(path));
      digest.Add("content", content);
    }
    // The options of an XML cluster stand behind its name.
    digest.Add("cluster", cell.cluster.substr(FileOfCluster(cell.cluster).size()));
    // A file of profiles is named after its model.
    digest.Add("profiles", fs::path(cell.profiles).filename().string());
    digest.Add("format", cell.trace.format);
    if (!cell.trace.map.empty()) {  // so that digests of cells without it stay
      digest.Add("map", cell.trace.map);
    }
    digest.Add("time_unit", fmt::format("{}", planned.inputs.time_unit));
    digest.Add("skip_bad_rows", cell.trace.skip_bad_rows ? "1" : "0");
    digest.Add("at_once", cell.trace.at_once ? "1" : "0");
    digest.Add("preset", preset).Add("policy", cell.names.policy);
    digest.Add("placement", cell.names.placement).Add("admission", cell.names.admission);
    digest.Add("tuning", cell.names.tuning).Add("seed", fmt::format("{}", cell.seed));
    digest.Add("until", cell.until ? fmt::format("{}", *cell.until) : "");
    digest.Add("track", cell.track);
    planned.digest = digest.Hex();
    return {};
  }

  // The file with the trace that these options give.
  Result<std::string> Generated(const Cell& cell) {
    if (!options_.generate) {
      return Failed("traces cannot be generated here; expected one with a path");
    }
    FieldDigest digest;
    digest.Add("program", options_.program);
    for (const auto& [key, value] : cell.trace.generate) {
      digest.Add(key, value);
    }
    const std::string name = digest.Hex();
    const auto [known, is_new] = generated_.try_emplace(name, std::string());
    if (is_new) {
      known->second = Generate(cell.trace.generate, name);
    }
    return known->second;
  }

  Result<std::string> Generate(const GenerateOptions& generate, const std::string& name) const {
    const std::string path = (fs::path(options_.folder) / (name + ".trace")).string();
    if (Exists(path)) {
      return path;
    }
    RETURN_IF_ERROR(results::MakeOutputDirectory(options_.folder));
    // Tasks of an array may do this at the same time.
    const std::string partial = fmt::format("{}.{}.partial", path, getpid());
    if (Status written = options_.generate(generate, partial); !written.ok()) {
      return Failed("trace generate: " + written.error().message);
    }
    std::error_code error;
    fs::rename(partial, path, error);
    return error ? Result<std::string>(Failed(path + ": cannot be written: " + error.message()))
                 : path;
  }

  const std::string& reference_;
  const PlanOptions& options_;
  ContentDigests contents_;
  std::map<std::string, Result<double>> units_;           // by preset
  std::map<std::string, Result<std::string>> generated_;  // by digest of the options
};

}  // namespace

std::vector<PlannedCell> PlanCells(std::span<const Cell> cells, const std::string& reference,
                                   const PlanOptions& options) {
  Planner planner(reference, options);
  std::vector<PlannedCell> planned;
  planned.reserve(cells.size());
  for (const Cell& cell : cells) {
    planned.push_back(planner.Plan(cell));
  }
  return planned;
}

Result<scenario::RunRequest> RequestOf(const Cell& cell, const scenario::Inputs& inputs) {
  scenario::RunRequest request{.names = cell.names, .seed = cell.seed};
  if (cell.until) {
    request.stop.until = AtSeconds(*cell.until);
  }
  if (!cell.track.empty()) {
    ASSIGN_OR_RETURN(const world::TrackedJobs tracked,
                     scenario::ParseTracked(cell.track, "track", inputs.jobs->size()));
    request.stop.tracked = tracked;
  }
  return request;
}

}  // namespace trainyard::experiments
