// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "experiments/sweep/command.h"
#include "io/file.h"
#include "results/write/output.h"
#include "results/write/output_file.h"

namespace trainyard::experiments {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kMostAttempts = 3;
constexpr std::size_t kUsualMaxArraySize = 1001;  // Slurm's own default
constexpr std::size_t kLogBytes = 500;            // of a lost task, in the reason
constexpr std::chrono::milliseconds kStopEvery{100};

std::string CellsFolder(const std::string& folder) { return folder + "/cells"; }
std::string ArraysFolder(const std::string& folder) { return folder + "/slurm"; }

// The name of the file with the outcome of a cell.
std::string OutcomeName(const PlannedCell& cell) {
  return io::Sha256Hex(cell.digest + "/" + cell.cell->id);
}

// Names of arrays begin so; other folders have other names.
std::string NamePrefix(const std::string& folder) {
  return "trainyard-" + io::Sha256Hex(folder).substr(0, 12) + "-";
}

Result<std::string> OutputOf(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(CommandOutput run, RunCommand(words));
  if (run.status != 0) {
    return Failed(fmt::format("{}: {}", words.front(), run.errors));
  }
  return std::move(run.output);
}

// A task of an array: the array's name and the index in it.
using TaskName = std::pair<std::string, std::size_t>;

struct Queue {
  std::set<TaskName> tasks;
  SlurmCounts counts;
};

// One line of squeue: name|index|state|job
void AddLine(std::string_view line, const std::string& prefix, Queue& queue) {
  const std::vector<std::string_view> fields = base::Split(line, "|");
  if (fields.size() != 4 || !fields[0].starts_with(prefix)) {
    return;
  }
  const std::optional<double> index = base::ToNumber(fields[1]);
  if (!index) {
    return;
  }
  queue.tasks.emplace(std::string(fields[0]), static_cast<std::size_t>(*index));
  ++(fields[2] == "PENDING" ? queue.counts.pending : queue.counts.running);
  const std::string job(fields[3]);
  if (std::find(queue.counts.jobs.begin(), queue.counts.jobs.end(), job) ==
      queue.counts.jobs.end()) {
    queue.counts.jobs.push_back(job);
  }
}

Result<Queue> AskQueue(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::string output,
                   OutputOf({"squeue", "--noheader", "--array", fmt::format("--user={}", getuid()),
                             "--format=%j|%K|%T|%F"}));
  Queue queue;
  for (const std::string_view line : base::Split(output, "\n")) {
    AddLine(line, prefix, queue);
  }
  return queue;
}

// How many tasks an array may have.
std::size_t AskMaxArraySize() {
  const Result<std::string> output = OutputOf({"scontrol", "show", "config"});
  if (output.ok()) {
    for (const std::string_view line : base::Split(output.value(), "\n")) {
      const std::size_t equals = line.find('=');
      if (line.starts_with("MaxArraySize") && equals != std::string_view::npos) {
        const std::optional<double> size = base::ToNumber(base::Trim(line.substr(equals + 1)));
        return size && *size >= 2 ? static_cast<std::size_t>(*size) : kUsualMaxArraySize;
      }
    }
  }
  return kUsualMaxArraySize;
}

// The end of the output of a lost task.
std::string EndOfLog(const std::string& path) {
  const Result<std::string> text = io::ReadBytes(path);
  if (!text.ok() || text.value().empty()) {
    return "; it said nothing";
  }
  std::string end = text.value();
  end.erase(end.find_last_not_of('\n') + 1);
  return ": " + (end.size() > kLogBytes ? end.substr(end.size() - kLogBytes) : end);
}

class SlurmRunner {
 public:
  SlurmRunner(ResultBook& book, const SlurmOptions& options)
      : book_(book), options_(options), prefix_(NamePrefix(options.folder)) {
    for (const std::size_t cell : book.open()) {
      open_[OutcomeName(book.cells()[cell])] = cell;
      by_id_[book.cells()[cell].cell->id] = cell;
    }
  }

  Result<bool> Run() {
    RETURN_IF_ERROR(Prepare());
    while (true) {
      // In this order: a task that has left the queue has written its results before.
      Result<Queue> queue = AskQueue(prefix_);
      RETURN_IF_ERROR(Collect());
      if (open_.empty()) {
        return true;
      }
      if (!queue.ok() && first_look_) {
        return queue.error();
      }
      if (queue.ok()) {
        RETURN_IF_ERROR(LookAt(queue.value()));
        first_look_ = false;
      }
      Tell(queue);
      if (!Wait()) {
        return false;
      }
    }
  }

 private:
  struct Standing {
    int attempts = 0;
    std::optional<Clock::time_point> left;  // the queue, as far as was seen
    std::string log;                        // of the last attempt
  };

  Status Prepare() {
    for (const std::string& folder :
         {CellsFolder(options_.folder), ArraysFolder(options_.folder)}) {
      RETURN_IF_ERROR(results::MakeOutputDirectory(folder));
    }
    max_array_size_ = AskMaxArraySize();
    return ReadArrays();
  }

  // What was submitted before.
  Status ReadArrays() {
    std::error_code error;
    for (fs::directory_iterator at(ArraysFolder(options_.folder), error), end; !error && at != end;
         at.increment(error)) {
      if (at->path().extension() != ".tasks") {
        continue;
      }
      ASSIGN_OR_RETURN(const std::string text, io::ReadBytes(at->path().string()));
      AddArray(at->path().stem().string(), text);
    }
    return error ? Status(Failed(fmt::format("{}: cannot be read: {}",
                                             ArraysFolder(options_.folder), error.message())))
                 : Status();
  }

  // Line n has the cells of task n, separated by tabs.
  void AddArray(const std::string& name, std::string_view text) {
    std::size_t task = 0;
    for (const std::string_view line : base::Split(text, "\n")) {
      for (const std::string_view id : base::Split(line, "\t")) {
        if (const auto cell = by_id_.find(id); cell != by_id_.end()) {
          tasks_[{name, task}].push_back(cell->second);
        }
      }
      ++task;
    }
    arrays_ += 1;
  }

  // Takes the results that have appeared.
  Status Collect() {
    std::vector<std::pair<std::size_t, CellOutcome>> outcomes;
    std::vector<fs::path> taken;
    std::error_code error;
    for (fs::directory_iterator at(CellsFolder(options_.folder), error), end; !error && at != end;
         at.increment(error)) {
      const auto open = open_.find(at->path().stem().string());
      if (at->path().extension() != ".json" || open == open_.end()) {
        continue;
      }
      const Result<std::string> text = io::ReadBytes(at->path().string());
      Result<CellOutcome> outcome =
          text.ok() ? ParseOutcome(text.value(), book_.cells()[open->second].digest)
                    : Result<CellOutcome>(text.error());
      if (outcome.ok()) {  // else it is as good as lost
        outcomes.emplace_back(open->second, std::move(outcome).value());
      }
      taken.push_back(at->path());
    }
    if (error) {
      return Failed(
          fmt::format("{}: cannot be read: {}", CellsFolder(options_.folder), error.message()));
    }
    return Take(outcomes, taken);
  }

  Status Take(const std::vector<std::pair<std::size_t, CellOutcome>>& outcomes,
              const std::vector<fs::path>& taken) {
    RETURN_IF_ERROR(book_.Put(outcomes));
    for (const auto& [cell, outcome] : outcomes) {
      open_.erase(OutcomeName(book_.cells()[cell]));
    }
    std::error_code ignored;  // a file that stays is of a cell that is done, and is not read again
    for (const fs::path& path : taken) {
      fs::remove(path, ignored);
    }
    return {};
  }

  // Submits the open cells that no task in the queue has, or gives them up.
  Status LookAt(Queue& queue) {
    const std::set<std::size_t> waited_for = CellsIn(queue.tasks);
    std::vector<std::size_t> to_submit;
    std::vector<std::pair<std::size_t, CellOutcome>> given_up;
    const Clock::time_point now = Clock::now();
    for (const auto& [name, cell] : open_) {
      Standing& standing = standings_[cell];
      if (waited_for.contains(cell)) {
        standing.left.reset();
        continue;
      }
      if (standing.attempts > 0) {
        standing.left = standing.left.value_or(now);
        if (std::chrono::duration<double>(now - *standing.left).count() < options_.grace) {
          continue;
        }
      }
      if (standing.attempts < kMostAttempts) {
        to_submit.push_back(cell);
      } else {
        given_up.emplace_back(cell, Lost(standing));
      }
    }
    RETURN_IF_ERROR(Take(given_up, {}));
    std::sort(to_submit.begin(), to_submit.end());  // the order of the matrix
    return Submit(to_submit, queue);
  }

  [[nodiscard]] std::set<std::size_t> CellsIn(const std::set<TaskName>& tasks) const {
    std::set<std::size_t> cells;
    for (const TaskName& task : tasks) {
      if (const auto found = tasks_.find(task); found != tasks_.end()) {
        cells.insert(found->second.begin(), found->second.end());
      }
    }
    return cells;
  }

  static CellOutcome Lost(const Standing& standing) {
    return {.status = CellStatus::kFailed,
            .reason = fmt::format("its Slurm task ended {} times without a result ({}){}",
                                  standing.attempts, standing.log, EndOfLog(standing.log)),
            .metrics = {},
            .extra = {}};
  }

  Status Submit(const std::vector<std::size_t>& cells, Queue& queue) {
    const std::size_t most = (max_array_size_ - 1) * options_.cells_per_task;
    for (std::size_t at = 0; at < cells.size(); at += most) {
      const std::vector<std::size_t> part(
          cells.begin() + static_cast<std::ptrdiff_t>(at),
          cells.begin() + static_cast<std::ptrdiff_t>(std::min(cells.size(), at + most)));
      const Result<std::size_t> submitted = SubmitArray(part, queue);
      if (submitted.ok()) {
        queue.counts.pending += submitted.value();
        continue;
      }
      // The queue may be full: the rest goes when others have left it.
      if (queue.counts.jobs.empty()) {
        return submitted.error();
      }
      return {};
    }
    return {};
  }

  // The number of tasks.
  Result<std::size_t> SubmitArray(const std::vector<std::size_t>& cells, Queue& queue) {
    const std::string name =
        fmt::format("{}{:04}-{:08x}", prefix_, arrays_ + 1, std::random_device()());
    std::string tasks;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      tasks += book_.cells()[cells[i]].cell->id;
      const bool last = (i + 1) % options_.cells_per_task == 0 || i + 1 == cells.size();
      tasks += last ? '\n' : '\t';
    }
    const auto count = static_cast<std::size_t>(std::count(tasks.begin(), tasks.end(), '\n'));
    const std::string stem = ArraysFolder(options_.folder) + "/" + name;
    // Before it is submitted: whoever dies in between finds it in the queue all the same.
    for (const auto& [path, text] :
         {std::pair{stem + ".tasks", tasks}, std::pair{stem + ".sh", Script(stem + ".tasks")}}) {
      RETURN_IF_ERROR(results::WriteTextFile(path, text));
    }
    std::vector<std::string> words{"sbatch", "--parsable", "--job-name=" + name,
                                   fmt::format("--array=0-{}", count - 1),
                                   "--output=" + stem + "-%a.log"};
    words.insert(words.end(), options_.sbatch_args.begin(), options_.sbatch_args.end());
    words.push_back(stem + ".sh");
    const Result<std::string> job = OutputOf(words);
    if (!job.ok()) {
      std::error_code ignored;
      fs::remove(stem + ".tasks", ignored);
      fs::remove(stem + ".sh", ignored);
      return job.error();
    }
    queue.counts.jobs.emplace_back(base::Split(job.value(), ";\n").front());
    AddArray(name, tasks);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Standing& standing = standings_[cells[i]];
      ++standing.attempts;
      standing.left.reset();
      standing.log = fmt::format("{}-{}.log", stem, i / options_.cells_per_task);
    }
    return count;
  }

  [[nodiscard]] std::string Script(const std::string& tasks) const {
    std::string command;
    for (const std::string& word : options_.task_words) {
      command += QuotedForShell(word) + " ";
    }
    // Without a cell the command would run all.
    return fmt::format(
        "#!/bin/sh\n# One task: the cells of its line, between tabs.\nset -f\n"
        "IFS=$(printf '\\t')\nset --\n"
        "for cell in $(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {}); do\n"
        "  set -- \"$@\" \"--cell=$cell\"\ndone\n[ $# -gt 0 ] || exit 1\nexec {}\"$@\"\n",
        QuotedForShell(tasks), command);
  }

  void Tell(const Result<Queue>& queue) {
    if (queue.ok()) {
      counts_ = queue.value().counts;
    } else {
      counts_.trouble = queue.error().message;
    }
    if (options_.on_look) {
      options_.on_look(book_.counts(), counts_);
    }
  }

  // False: stopped.
  [[nodiscard]] bool Wait() const {
    const Clock::time_point until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(options_.look_every));
    while (Clock::now() < until) {
      if (options_.stop && options_.stop()) {
        return false;
      }
      std::this_thread::sleep_for(kStopEvery);
    }
    return true;
  }

  ResultBook& book_;
  const SlurmOptions& options_;
  const std::string prefix_;
  std::map<std::string, std::size_t> open_;  // cells without outcome, by OutcomeName
  std::map<std::string, std::size_t, std::less<>> by_id_;
  std::map<TaskName, std::vector<std::size_t>> tasks_;  // the cells of everything submitted
  std::map<std::size_t, Standing> standings_;           // by cell
  std::size_t arrays_ = 0;
  std::size_t max_array_size_ = kUsualMaxArraySize;
  bool first_look_ = true;
  SlurmCounts counts_;
};

}  // namespace

Result<bool> RunOpenCellsOnSlurm(ResultBook& book, const SlurmOptions& options) {
  return book.open().empty() ? Result<bool>(true) : SlurmRunner(book, options).Run();
}

Status ForgetSlurmTasks(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(ArraysFolder(folder), ignored)) {
    return {};
  }
  ASSIGN_OR_RETURN(const Queue queue, AskQueue(NamePrefix(folder)));
  if (!queue.counts.jobs.empty()) {
    std::vector<std::string> words{"scancel"};
    words.insert(words.end(), queue.counts.jobs.begin(), queue.counts.jobs.end());
    RETURN_IF_ERROR(OutputOf(words));
  }
  for (const std::string& path : {ArraysFolder(folder), CellsFolder(folder)}) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) {
      return Failed(path + ": cannot be removed: " + error.message());
    }
  }
  return {};
}

Status WriteTaskOutcome(const std::string& folder, const PlannedCell& cell) {
  RETURN_IF_ERROR(results::MakeOutputDirectory(CellsFolder(folder)));
  return results::WriteTextFile(CellsFolder(folder) + "/" + OutcomeName(cell) + ".json",
                                OutcomeJson(cell.outcome, cell.digest));
}

}  // namespace trainyard::experiments
