// SPDX-License-Identifier: Apache-2.0
#include "originals/results/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include "base/try.h"
#include "results/explain/explain.h"
#include "results/metrics/metrics.h"
#include "results/read/read_run.h"

namespace trainyard::originals {
namespace {

namespace fs = std::filesystem;

// Folders below the one that is named: a sweep has runs/TRACE/CLUSTER/RUN and one more for each
// further axis.
constexpr int kDeepest = 12;

// Without the endings of packed files.
std::string Unpacked(std::string name) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
    }
  }
  return name;
}

bool IsTableOfJobs(const std::string& file) {
  const std::string name = Unpacked(file);
  return name.ends_with("job.csv") || name.ends_with("jobs.csv") ||
         (name.starts_with("time-aware-with-lease") && name.ends_with(".csv"));
}

bool IsResult(const std::string& name) { return name.ends_with(kBloxJobs) || IsTableOfJobs(name); }

// By name.
Result<std::vector<fs::path>> EntriesOf(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) {
    return BadInput(folder.string() + ": " + error.message() + "; expected a folder to read");
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// What a user calls a result: the name of its file, or of its folder where the file says nothing.
std::string NameOf(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  std::string name = Unpacked(file);
  for (const std::string_view ending :
       {kBloxJobs, std::string_view("per_job.csv"), std::string_view("jobs.csv"),
        std::string_view("job.csv"), std::string_view(".csv")}) {
    if (name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
      break;
    }
  }
  while (!name.empty() && (name.back() == '.' || name.back() == '_')) {
    name.pop_back();
  }
  return name.empty() ? fs::path(path).parent_path().filename().string() : name;
}

// The name of the folder above, for results that are named alike.
std::string NameAbove(const std::string& path) {
  return fs::path(path).parent_path().filename().string();
}

class Reader {
 public:
  explicit Reader(const ResultsRequest& request) : request_(request) {}

  Status Take(const std::string& path) {
    const std::size_t before = results_.runs.size();
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      return BadInput(path + ": is not there; expected a folder or file with results");
    }
    Status status = fs::is_directory(path, ignored) ? TakeFolder(path, 0) : TakeFile(path);
    if (status.ok() && results_.runs.size() == before) {
      return BadInput(path +
                      ": holds no results; expected jobs.csv, summary.json and timeline.csv of a "
                      "run (of a sweep: with --keep-runs), or results of a published program "
                      "(docs/formats/original-results.md)");
    }
    return status;
  }

  Result<Results> Finish() {
    NameClusters();
    MakeLabelsUnique();
    RETURN_IF_ERROR(CheckTraces());
    return std::move(results_);
  }

 private:
  Status TakeFolder(const fs::path& folder, int depth) {
    ASSIGN_OR_RETURN(const std::vector<fs::path> entries, EntriesOf(folder));
    std::vector<fs::path> folders;
    bool has_jobs = false;
    for (const fs::path& entry : entries) {
      const std::string name = entry.filename().string();
      std::error_code ignored;
      if (fs::is_directory(entry, ignored)) {
        folders.push_back(entry);
      } else if (IsResult(name)) {
        has_jobs = true;
        RETURN_IF_ERROR(TakeFile(entry.string()));
      }
    }
    if (!has_jobs && fs::exists(folder / "timeline.csv")) {
      return BadInput((folder / "jobs.csv").string() +
                      ": is not there, but timeline.csv is; expected all files of a run");
    }
    for (const fs::path& below : folders) {
      if (depth < kDeepest) {
        RETURN_IF_ERROR(TakeFolder(below, depth + 1));
      }
    }
    return {};
  }

  Status TakeFile(const std::string& path) {
    if (path.ends_with(kBloxJobs)) {
      return TakeOriginal(ReadBloxResult(path));
    }
    ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
    if (!request_.program && table.Column({"gpus_requested"}) >= 0) {
      return TakeRun(path);
    }
    return TakeOriginal(ReadOriginalTable(path, request_.program, request_.time_unit));
  }

  Status TakeRun(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    ASSIGN_OR_RETURN(results::RunResult run,
                     results::ReadRun(folder.empty() ? "." : folder.string()));
    Add(std::move(run), std::nullopt, path);
    return {};
  }

  Status TakeOriginal(Result<OriginalResult> read) {
    ASSIGN_OR_RETURN(OriginalResult result, std::move(read));
    results::RunResult run = RunOf(result);
    run.policy = run.label = NameOf(result.path);
    const std::string path = result.path;
    Add(std::move(run), std::move(result), path);
    return {};
  }

  void Add(results::RunResult run, std::optional<OriginalResult> original,
           const std::string& path) {
    const auto place = static_cast<std::ptrdiff_t>(original ? results_.runs.size() : own_++);
    results_.runs.insert(results_.runs.begin() + place, std::move(run));
    results_.originals.insert(results_.originals.begin() + place, std::move(original));
    paths_.insert(paths_.begin() + place, path);
  }

  // Runs on different clusters stand in one table only with a word on it.
  void NameClusters() {
    std::vector<results::RunResult>& runs = results_.runs;
    // Results of published programs do not say on which they ran; own runs come first.
    const std::span own(runs.data(), own_);
    if (std::all_of(own.begin(), own.end(), [&](const results::RunResult& run) {
          return results::OnSameCluster(run, own.front());
        })) {
      return;
    }
    std::map<std::string, std::set<std::int64_t>> sizes;  // of the clusters of a name, in GPUs
    for (const results::RunResult& run : own) {
      sizes[run.cluster_name].insert(run.gpus);
    }
    for (results::RunResult& run : own) {
      run.label += " on " + run.cluster_name;
      run.label += sizes[run.cluster_name].size() > 1 ? fmt::format(" ({} GPUs)", run.gpus) : "";
    }
  }

  void MakeLabelsUnique() {
    std::map<std::string, int> uses;
    for (const results::RunResult& run : results_.runs) {
      ++uses[run.label];
    }
    std::set<std::string> taken;
    for (std::size_t i = 0; i < results_.runs.size(); ++i) {
      std::string& label = results_.runs[i].label;
      if (uses[label] > 1) {
        label = fmt::format("{}/{}", NameAbove(paths_[i]), label);
      }
      const std::string base = label;
      for (int n = 2; !taken.insert(label).second; ++n) {
        label = fmt::format("{} ({})", base, n);
      }
    }
  }

  // Runs are on one trace if its digest is the same, or where that is not known, if jobs of the
  // same name are submitted at the same time.
  [[nodiscard]] Status CheckTraces() const {
    const results::RunResult& first = results_.runs.front();
    for (const results::RunResult& run : results_.runs) {
      const bool digests = !first.trace_sha256.empty() && !run.trace_sha256.empty();
      if (digests && first.trace_sha256 != run.trace_sha256) {
        return InvalidArgument(fmt::format(
            "'{}' is a run on {} and '{}' on {}; expected runs on one trace, a report for each",
            first.label, first.trace_path, run.label, run.trace_path));
      }
      if (!digests) {
        RETURN_IF_ERROR(CheckJobs(first, run));
      }
    }
    return {};
  }

  [[nodiscard]] static Status CheckJobs(const results::RunResult& first,
                                        const results::RunResult& run) {
    std::map<std::string_view, TimePoint> submits;
    for (const results::JobResult& job : first.jobs) {
      submits[job.spec->name] = job.spec->submit;
    }
    bool common = false;
    for (const results::JobResult& job : run.jobs) {
      const auto found = submits.find(job.spec->name);
      common = common || found != submits.end();
      if (found != submits.end() && found->second != job.spec->submit) {
        return InvalidArgument(fmt::format(
            "job '{}' is submitted at {} s in '{}' and at {} s in '{}'; expected runs on one "
            "trace, a report for each",
            job.spec->name, Seconds(found->second), first.label, Seconds(job.spec->submit),
            run.label));
      }
    }
    return common ? Status()
                  : Status(InvalidArgument(
                        fmt::format("'{}' and '{}' have no job in common; expected runs on one "
                                    "trace, a report for each",
                                    first.label, run.label)));
  }

  const ResultsRequest& request_;
  Results results_;
  std::vector<std::string> paths_;  // of each run
  std::size_t own_ = 0;             // they come first: the page describes trace and cluster by them
};

}  // namespace

Result<Results> ReadResults(const ResultsRequest& request) {
  Reader reader(request);
  for (const std::string& path : request.paths) {
    RETURN_IF_ERROR(reader.Take(path));
  }
  return reader.Finish();
}

}  // namespace trainyard::originals
