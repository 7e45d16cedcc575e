// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <system_error>
#include <tuple>

#include "base/check.h"
#include "base/try.h"
#include "io/descriptor.h"
#include "results/write/output.h"
#include "scenario/scenario.h"

namespace trainyard::experiments {
namespace {

constexpr int kLookEveryMs = 200;  // whether to stop
constexpr std::size_t kMostErrorBytes = 2000;
// To make a process costs about 2 ms, as much as a small run.
constexpr std::size_t kMostInBatch = 64;
constexpr std::chrono::milliseconds kTimeOfBatch{50};

Error SystemError(std::string_view what) {
  return Failed(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

CellOutcome FailedWith(std::string reason) {
  return {.status = CellStatus::kFailed, .reason = std::move(reason), .metrics = {}, .extra = {}};
}

// A cell in the order of running.
struct Turn {
  std::size_t cell = 0;
  std::size_t group = 0;       // of cells with the same inputs
  bool shares_inputs = false;  // else its own process reads them
};

// A process that runs cells one after the other. It stops when its time is up, so that what it has
// not begun can go to others.
struct Child {
  std::vector<Turn> batch;
  std::size_t ended = 0;  // how many of the batch
  pid_t pid = 0;
  io::Descriptor results;     // the end of a pipe: one line for each cell that has ended
  io::Descriptor complaints;  // its standard error
  std::string text;           // of the results: what is not yet a whole line
};

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return;  // nobody reads any more
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

std::string ReadFromStart(int fd) {
  std::string text(kMostErrorBytes, '\0');
  const ssize_t count = pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) {
    const char* const name = sigdescr_np(WTERMSIG(status));
    return fmt::format("its process was ended by signal {} ({})", WTERMSIG(status),
                       name == nullptr ? "unknown" : name);
  }
  return fmt::format("its process ended with status {}", WEXITSTATUS(status));
}

// What two cells must share to share inputs.
using InputKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string, bool, bool, double>;

InputKey KeyOf(const scenario::InputPaths& paths) {
  return {paths.trace,    paths.format,        paths.columns, paths.cluster,
          paths.profiles, paths.skip_bad_rows, paths.at_once, paths.time_unit};
}

class Runner {
 public:
  Runner(ResultBook& book, const RunnerOptions& options) : book_(book), options_(options) {}

  ~Runner() {
    for (const Child& child : children_) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  Result<bool> Run() {
    OrderByInputs();
    while (!queue_.empty() || !children_.empty()) {
      if (options_.stop && options_.stop()) {
        return false;
      }
      RETURN_IF_ERROR(StartAllThatFit());
      // Committed after others have been started, which run meanwhile.
      RETURN_IF_ERROR(PutEnded());
      RETURN_IF_ERROR(Listen());
    }
    RETURN_IF_ERROR(PutEnded());
    return true;
  }

 private:
  // Cells with the same inputs follow one another, in the order in which inputs are first needed.
  void OrderByInputs() {
    std::map<InputKey, std::size_t> group_of;
    std::vector<std::vector<std::size_t>> groups;
    for (const std::size_t cell : book_.open()) {
      const auto [group, is_new] =
          group_of.try_emplace(KeyOf(book_.cells()[cell].inputs), groups.size());
      if (is_new) {
        groups.emplace_back();
      }
      groups[group->second].push_back(cell);
    }
    for (std::size_t group = 0; group < groups.size(); ++group) {
      for (const std::size_t cell : groups[group]) {
        queue_.push_back({.cell = cell, .group = group, .shares_inputs = groups[group].size() > 1});
      }
    }
  }

  Status StartAllThatFit() {
    while (!queue_.empty() && children_.size() < static_cast<std::size_t>(options_.parallel)) {
      std::vector<Turn> batch = NextBatch();
      DropInputsExcept(batch.front().group);  // before others are read
      if (batch.front().shares_inputs) {
        HoldInputs(batch.front());
      }
      RETURN_IF_ERROR(Start(std::move(batch)));
    }
    return {};
  }

  // Some of those that come next and share inputs; not so many that others have nothing to do.
  std::vector<Turn> NextBatch() {
    const std::size_t share = queue_.size() / (2 * static_cast<std::size_t>(options_.parallel));
    const std::size_t most = std::clamp(share, std::size_t{1}, kMostInBatch);
    std::vector<Turn> batch;
    while (!queue_.empty() && batch.size() < most &&
           (batch.empty() || queue_.front().group == batch.front().group)) {
      batch.push_back(queue_.front());
      queue_.pop_front();
    }
    return batch;
  }

  // What a child gives back needs the inputs of its group again.
  void DropInputsExcept(std::size_t group) {
    std::erase_if(inputs_, [&](const auto& held) {
      return held.first != group &&
             std::none_of(children_.begin(), children_.end(), [&held](const Child& child) {
               return child.batch.front().group == held.first;
             });
    });
  }

  void HoldInputs(const Turn& turn) {
    if (!inputs_.contains(turn.group)) {
      inputs_.emplace(turn.group, scenario::ReadInputs(book_.cells()[turn.cell].inputs));
    }
  }

  Status Start(std::vector<Turn> batch) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      return SystemError("no pipe can be made");
    }
    io::Descriptor read_end(ends[0]);
    io::Descriptor write_end(ends[1]);
    io::Descriptor complaints(memfd_create("complaints", MFD_CLOEXEC));
    if (complaints.get() < 0) {
      return SystemError("no file in memory can be made");
    }
    // What is buffered would be written by both.
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
      return SystemError("no process can be made");
    }
    if (pid == 0) {
      BeChild(batch, parent, write_end.get(), complaints.get());
    }
    children_.push_back({.batch = std::move(batch),
                         .pid = pid,
                         .results = std::move(read_end),
                         .complaints = std::move(complaints),
                         .text = {}});
    return {};
  }

  [[noreturn]] void BeChild(const std::vector<Turn>& batch, pid_t parent, int results,
                            int complaints) const {
    // It must not outlive the sweep; and who interrupts the sweep from the keyboard means the
    // sweep, which ends its children.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    if (getppid() != parent) {
      _exit(1);
    }
    dup2(complaints, STDERR_FILENO);
    dup2(complaints, STDOUT_FILENO);
    const auto start = std::chrono::steady_clock::now();
    for (const Turn& turn : batch) {
      WriteAll(results, OutcomeJson(RunTurn(turn), book_.cells()[turn.cell].digest) + "\n");
      if (std::chrono::steady_clock::now() - start > kTimeOfBatch) {
        break;
      }
    }
    _exit(0);  // without destructors: what they would tidy is the parent's
  }

  [[nodiscard]] CellOutcome RunTurn(const Turn& turn) const {
    const PlannedCell& cell = book_.cells()[turn.cell];
    if (options_.instead) {
      if (std::optional<CellOutcome> outcome = options_.instead(*cell.cell)) {
        return std::move(*outcome);
      }
    }
    const std::string folder = book_.RunFolder(turn.cell);
    return turn.shares_inputs
               ? RunCell(*cell.cell, inputs_.at(turn.group), folder, options_.extra)
               : RunCell(*cell.cell, scenario::ReadInputs(cell.inputs), folder, options_.extra);
  }

  Status Listen() {
    if (children_.empty()) {
      return {};
    }
    std::vector<pollfd> files;
    for (const Child& child : children_) {
      files.push_back({.fd = child.results.get(), .events = POLLIN, .revents = 0});
    }
    if (poll(files.data(), files.size(), kLookEveryMs) < 0) {
      return errno == EINTR ? Status() : Status(SystemError("poll"));
    }
    std::vector<Child> running;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (files[i].revents != 0 && !ReadMore(children_[i])) {
        Bury(children_[i]);
      } else {
        running.push_back(std::move(children_[i]));
      }
    }
    children_ = std::move(running);
    return {};
  }

  // False: that was all.
  bool ReadMore(Child& child) {
    std::array<char, 65536> buffer{};
    const ssize_t count = read(child.results.get(), buffer.data(), buffer.size());
    if (count <= 0) {
      return count < 0 && errno == EINTR;
    }
    child.text.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = child.text.find('\n')) != std::string::npos;) {
      CHECK(child.ended < child.batch.size());
      const std::size_t cell = child.batch[child.ended++].cell;
      Result<CellOutcome> outcome =
          ParseOutcome(std::string_view(child.text).substr(0, end), book_.cells()[cell].digest);
      ended_.emplace_back(
          cell, outcome.ok() ? std::move(outcome).value() : FailedWith(outcome.error().message));
      child.text.erase(0, end + 1);
    }
    return true;
  }

  // A child that died has failed at the cell that it had begun; what it has not begun comes next.
  void Bury(Child& child) {
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (child.ended < child.batch.size() && (status != 0 || child.ended == 0)) {
      const std::string said = ReadFromStart(child.complaints.get());
      ended_.emplace_back(child.batch[child.ended++].cell,
                          FailedWith(HowItEnded(status) + (said.empty() ? "" : ": " + said)));
    }
    queue_.insert(queue_.begin(), child.batch.begin() + static_cast<std::ptrdiff_t>(child.ended),
                  child.batch.end());
  }

  Status PutEnded() {
    if (ended_.empty()) {
      return {};
    }
    Status put = book_.Put(ended_);
    ended_.clear();
    if (put.ok() && options_.on_done) {
      options_.on_done(book_.counts());
    }
    return put;
  }

  ResultBook& book_;
  const RunnerOptions& options_;
  std::deque<Turn> queue_;
  std::map<std::size_t, Result<scenario::Inputs>>
      inputs_;  // by group: those that children may need
  std::vector<Child> children_;
  std::vector<std::pair<std::size_t, CellOutcome>> ended_;  // not yet in the book
};

Result<results::RunResult> RunWith(const Cell& cell, const scenario::Inputs& inputs,
                                   bool keep_timeline) {
  ASSIGN_OR_RETURN(scenario::RunRequest request, RequestOf(cell, inputs));
  request.keep_timeline = keep_timeline;
  request.keep_allocations = keep_timeline && cell.keep_allocations;
  Result<results::RunResult> run = scenario::RunScenario(inputs, request);
  if (run.ok()) {
    RETURN_IF_ERROR(results::CheckFinished(run.value()));
  }
  return run;
}

}  // namespace

CellOutcome RunCell(const Cell& cell, const Result<scenario::Inputs>& inputs,
                    const std::string& folder, const ExtraOf& extra) {
  if (!inputs.ok()) {
    return FailedWith(inputs.error().message);
  }
  const bool keep_timeline = !folder.empty() || extra != nullptr;
  const Result<results::RunResult> run = RunWith(cell, inputs.value(), keep_timeline);
  if (!run.ok()) {
    return FailedWith(run.error().message);
  }
  if (!folder.empty()) {
    if (Status written = results::WriteRun(run.value(), folder); !written.ok()) {
      return FailedWith(written.error().message);
    }
  }
  return {.status = CellStatus::kOk,
          .reason = {},
          .metrics = MetricsOf(run.value()),
          .extra = extra ? extra(cell, run.value()) : std::string()};
}

Result<bool> RunOpenCells(ResultBook& book, const RunnerOptions& options) {
  CHECK(options.parallel >= 1);
  return Runner(book, options).Run();
}

}  // namespace trainyard::experiments
