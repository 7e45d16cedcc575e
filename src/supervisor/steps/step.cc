// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/descriptor.h"
#include "supervisor/process_table.h"
#include "supervisor/steps/slurm_tools.h"
#include "supervisor/steps/step_claims.h"

namespace trainyard::supervisor {
namespace {

constexpr int kMissingProgram = 2;
constexpr int kBySignal = 128;

// How many steps of the attempt there have been before this one.
int TakeStepNumber() {
  const std::string path = JobVariable(kStepFolderVariable) + "/" + kStepCount;
  constexpr mode_t kMine = 0600;
  const io::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMine));
  std::array<char, 16> text{};
  if (file.get() < 0 || flock(file.get(), LOCK_EX) != 0 ||
      pread(file.get(), text.data(), text.size() - 1, 0) < 0) {
    return 0;
  }
  const int number = base::ToInteger<int>(base::Trim(text.data())).value_or(0);
  const std::string next = std::to_string(number + 1);
  return pwrite(file.get(), next.data(), next.size(), 0) < 0 ? 0 : number;
}

struct Task {
  pid_t pid = 0;
  bool running = false;
  io::Descriptor lines{};  // what it prints, where lines get labels
  std::string begun{};     // of a line
};

class RunningStep {
 public:
  explicit RunningStep(const StepOptions& options) : options_(options), number_(TakeStepNumber()) {
    names_ = {.job = JobVariable("SLURM_JOB_ID"),
              .array = JobVariable("SLURM_ARRAY_JOB_ID"),
              .index = JobVariable("SLURM_ARRAY_TASK_ID"),
              .name = JobVariable("SLURM_JOB_NAME"),
              .user = JobVariable("USER"),
              .node = JobVariable("SLURMD_NODENAME"),
              .number = number_};
    for (const std::string_view gpu : base::Split(JobVariable("CUDA_VISIBLE_DEVICES"), ",")) {
      if (!gpu.empty()) {
        gpus_.emplace_back(gpu);
      }
    }
  }

  int Run() {
    if (!Claim()) {  // while it waits, a signal ends it
      return 1;
    }
    ApplyExport();
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      sigaddset(&taken, signal);
    }
    sigprocmask(SIG_BLOCK, &taken, &former_mask_);
    signals_ = io::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    TakeInput();
    tasks_.resize(static_cast<std::size_t>(options_.tasks));
    for (int rank = 0; rank < options_.tasks && status_ == 0; ++rank) {
      Start(rank);
    }
    while (std::any_of(tasks_.begin(), tasks_.end(),
                       [](const Task& task) { return task.running || task.lines.get() >= 0; })) {
      Wait();
    }
    return status_;
  }

 private:
  // Waits until the CPUs and GPUs that it asks for are free of other steps. False: the job has not
  // so many GPUs.
  bool Claim() {
    const auto gpus = static_cast<std::size_t>(
        options_.gpus_per_task > 0 ? options_.gpus_per_task * options_.tasks : options_.gpus);
    if (gpus > gpus_.size()) {
      fmt::print(stderr,
                 "srun: error: Unable to create step for job {}: Invalid generic resource (gres) "
                 "specification\n",
                 names_.job);
      return false;
    }
    std::vector<std::string> cpus;
    cpus.reserve(static_cast<std::size_t>(options_.cpus_here));
    for (int cpu = 0; cpu < options_.cpus_here; ++cpu) {
      cpus.push_back(std::to_string(cpu));
    }
    if (options_.overlaps) {
      gpus_.resize(gpus == 0 ? gpus_.size() : gpus);
      return true;
    }
    const std::string folder = JobVariable(kStepFolderVariable);
    const auto wanted =
        static_cast<std::size_t>(options_.tasks) * static_cast<std::size_t>(options_.cpus_per_task);
    for (bool told = false;; told = true) {
      auto of_cpus = TryClaim(folder, "cpu", cpus, cpus.empty() ? 0 : wanted);
      auto of_gpus = of_cpus ? TryClaim(folder, "gpu", gpus_, gpus) : std::nullopt;
      if (of_gpus) {
        gpus_ = gpus == 0 ? gpus_ : of_gpus->names;
        claims_[0] = *std::move(of_cpus);
        claims_[1] = *std::move(of_gpus);
        return true;
      }
      of_cpus.reset();
      if (!told) {
        fmt::print(stderr,
                   "srun: Job {} step creation temporarily disabled, retrying (Requested nodes are "
                   "busy)\n",
                   names_.job);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  // ALL, NONE, or names, of which those with a value are set.
  void ApplyExport() const {
    const std::vector<std::string_view> items = base::Split(options_.exported, ",");
    if (std::find(items.begin(), items.end(), "ALL") == items.end()) {
      std::vector<std::string> dropped;
      for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        const bool kept = name.starts_with("SLURM") || name.starts_with("TRAINYARD_") ||
                          name == "PATH" || name == "HOME" || name == "CUDA_VISIBLE_DEVICES" ||
                          std::find(items.begin(), items.end(), name) != items.end();
        if (!kept) {
          dropped.emplace_back(name);
        }
      }
      for (const std::string& name : dropped) {
        unsetenv(name.c_str());
      }
    }
    for (const std::string_view item : items) {
      if (const std::size_t equals = item.find('='); equals != std::string_view::npos) {
        setenv(std::string(item.substr(0, equals)).c_str(),
               std::string(item.substr(equals + 1)).c_str(), 1);
      }
    }
  }

  // Pipes are read to their end first, so that each task can read all of it.
  void TakeInput() {
    struct stat status {};
    if (options_.tasks == 1 || !options_.input.empty() || fstat(STDIN_FILENO, &status) != 0 ||
        !S_ISFIFO(status.st_mode)) {
      return;
    }
    spool_ = io::Descriptor(memfd_create("srun", MFD_CLOEXEC));
    std::array<char, 1 << 16> piece{};
    for (ssize_t got = 0; (got = read(STDIN_FILENO, piece.data(), piece.size())) > 0;) {
      if (write(spool_.get(), piece.data(), static_cast<std::size_t>(got)) != got) {
        return;
      }
    }
  }

  // What the task reads: opened anew, so that each has a place of its own in it. -1: srun's own.
  [[nodiscard]] int InputOf(int rank) const {
    const std::string& input = options_.input;
    if (input.empty() || input == "all") {
      struct stat status {};
      const bool is_file = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
      if (spool_.get() < 0 && !is_file) {
        return -1;
      }
      const int source = spool_.get() < 0 ? STDIN_FILENO : spool_.get();
      return open(fmt::format("/proc/self/fd/{}", source).c_str(), O_RDONLY);
    }
    if (input == "none") {
      return open("/dev/null", O_RDONLY);
    }
    if (const auto only = base::ToInteger<int>(input)) {
      return *only == rank ? -1 : open("/dev/null", O_RDONLY);
    }
    StepNames names = names_;
    names.task = rank;
    return open(StepFile(input, names).c_str(), O_RDONLY);
  }

  void Start(int rank) {
    Task& task = tasks_[static_cast<std::size_t>(rank)];
    std::array<int, 2> lines{-1, -1};
    std::array<int, 2> failure{-1, -1};
    if ((options_.label && options_.output.empty() && pipe2(lines.data(), O_CLOEXEC) != 0) ||
        pipe2(failure.data(), O_CLOEXEC) != 0) {
      return Fail(fmt::format("no pipe: {}", std::strerror(errno)));
    }
    task.pid = fork();
    if (task.pid == 0) {
      BeTask(rank, lines[1], failure[1]);
    }
    if (lines[1] >= 0) {
      close(lines[1]);
      task.lines = io::Descriptor(lines[0]);
    }
    close(failure[1]);
    std::array<char, 512> why{};
    const ssize_t got = read(failure[0], why.data(), why.size() - 1);
    close(failure[0]);
    if (task.pid < 0 || got > 0) {
      fmt::print(stderr, "slurmstepd: error: {}\n", got > 0 ? why.data() : "no process");
      status_ = std::max(status_, kMissingProgram);
    }
    task.running = task.pid > 0;
  }

  void Fail(const std::string& why) {
    fmt::print(stderr, "srun: error: {}\n", why);
    status_ = std::max(status_, 1);
  }

  [[noreturn]] void BeTask(int rank, int lines, int failure) {
    sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
    SetEnvironment(rank);
    StepNames names = names_;
    names.task = rank;
    const auto give_up = [failure](const std::string& why) {
      static_cast<void>(!write(failure, why.data(), why.size()));
      _exit(kMissingProgram);
    };
    const auto open_file = [&](const std::string& pattern, int as) {
      constexpr mode_t kAll = 0666;
      const std::string path = StepFile(pattern, names);
      const bool shared = pattern.find("%t") == std::string::npos;
      const int file = open(
          path.c_str(), O_WRONLY | O_CREAT | O_APPEND | (shared && rank > 0 ? 0 : O_TRUNC), kAll);
      if (file < 0) {
        give_up(fmt::format("{}: {}", path, std::strerror(errno)));
      }
      dup2(file, as);
    };
    if (const int input = InputOf(rank); input >= 0) {
      dup2(input, STDIN_FILENO);
    }
    if (lines >= 0) {
      dup2(lines, STDOUT_FILENO);
      dup2(lines, STDERR_FILENO);
    }
    if (!options_.output.empty()) {
      open_file(options_.output, STDOUT_FILENO);
      if (options_.errors.empty()) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
      }
    }
    if (!options_.errors.empty()) {
      open_file(options_.errors, STDERR_FILENO);
    }
    if (!options_.folder.empty() && chdir(options_.folder.c_str()) != 0) {
      give_up(fmt::format("{}: {}", options_.folder, std::strerror(errno)));
    }
    std::vector<char*> words;
    for (const std::string& word : options_.command) {
      words.push_back(const_cast<char*>(word.c_str()));  // NOLINT: execvp leaves them as they are
    }
    words.push_back(nullptr);
    execvp(words.front(), words.data());
    give_up(fmt::format("execve(): {}: {}", options_.command.front(), std::strerror(errno)));
    _exit(kMissingProgram);
  }

  void SetEnvironment(int rank) const {
    const auto set = [](const char* name, const std::string& value) {
      setenv(name, value.c_str(), 1);
    };
    const std::string tasks = std::to_string(options_.tasks);
    std::string ranks;
    for (int i = 0; i < options_.tasks; ++i) {
      ranks += (i > 0 ? "," : "") + std::to_string(i);
    }
    set("SLURM_PROCID", std::to_string(rank));
    set("SLURM_LOCALID", std::to_string(rank));
    set("SLURM_NODEID", "0");
    set("SLURM_GTIDS", ranks);
    set("SLURM_NTASKS", tasks);
    set("SLURM_NPROCS", tasks);
    set("SLURM_NNODES", "1");
    set("SLURM_STEP_ID", std::to_string(number_));
    set("SLURM_STEPID", std::to_string(number_));
    set("SLURM_STEP_NODELIST", names_.node);
    set("SLURM_STEP_NUM_NODES", "1");
    set("SLURM_STEP_NUM_TASKS", tasks);
    set("SLURM_STEP_TASKS_PER_NODE", tasks);
    set("SLURM_DISTRIBUTION", "block");
    set("SLURM_TASK_PID", std::to_string(getpid()));
    if (options_.gpus_per_task > 0 || options_.gpus > 0) {
      std::string own;
      const std::size_t each = options_.gpus_per_task > 0
                                   ? static_cast<std::size_t>(options_.gpus_per_task)
                                   : gpus_.size();
      const std::size_t first =
          options_.gpus_per_task > 0 ? static_cast<std::size_t>(rank) * each : 0;
      const std::size_t last = first + each;
      for (std::size_t i = first; i < std::min(last, gpus_.size()); ++i) {
        own += (own.empty() ? "" : ",") + gpus_[i];
      }
      for (const char* const name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                     "GPU_DEVICE_ORDINAL", "SLURM_STEP_GPUS"}) {
        set(name, own);
      }
    } else if (!gpus_.empty()) {
      set("SLURM_STEP_GPUS", JobVariable("SLURM_JOB_GPUS"));
    }
  }

  void Wait() {
    std::vector<pollfd> polls{{.fd = signals_.get(), .events = POLLIN}};
    for (const Task& task : tasks_) {
      if (task.lines.get() >= 0) {
        polls.push_back({.fd = task.lines.get(), .events = POLLIN});
      }
    }
    poll(polls.data(), polls.size(), -1);
    for (std::size_t rank = 0; rank < tasks_.size(); ++rank) {
      Task& task = tasks_[rank];
      const bool ready = std::any_of(polls.begin() + 1, polls.end(), [&task](const pollfd& one) {
        return one.fd == task.lines.get() && one.revents != 0;
      });
      if (ready) {
        PrintLines(rank, task);
      }
    }
    TakeSignals();
  }

  static void PrintLines(std::size_t rank, Task& task) {
    std::array<char, 4096> piece{};
    const ssize_t got = read(task.lines.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) {
      return;
    }
    task.begun.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::size_t from = 0;
    for (std::size_t end = 0; (end = task.begun.find('\n', from)) != std::string::npos;
         from = end + 1) {
      fmt::print("{}: {}\n", rank, std::string_view(task.begun).substr(from, end - from));
    }
    task.begun.erase(0, from);
    if (got <= 0) {
      if (!task.begun.empty()) {
        fmt::print("{}: {}\n", rank, task.begun);
      }
      task.lines.Close();
    }
    std::fflush(stdout);
  }

  void TakeSignals() {
    signalfd_siginfo signal{};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
      if (signal.ssi_signo == SIGCHLD) {
        Reap();
      } else if (!IsAbove(static_cast<pid_t>(signal.ssi_pid))) {
        SignalAll(static_cast<int>(signal.ssi_signo));
      }
    }
    Reap();
  }

  // Who is above this process signals all processes of the job: the tasks have the signal, too.
  static bool IsAbove(pid_t sender) {
    for (pid_t pid = getppid(); pid > 1;) {
      if (pid == sender) {
        return true;
      }
      const std::optional<Process> process = FindProcess(pid);
      pid = process ? process->parent : 0;
    }
    return false;
  }

  void SignalAll(int signal) {
    for (const Task& task : tasks_) {
      if (task.running) {
        kill(task.pid, signal);
      }
    }
  }

  void Reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      const auto task = std::find_if(tasks_.begin(), tasks_.end(),
                                     [pid](const Task& one) { return one.pid == pid; });
      if (task == tasks_.end() || !task->running) {
        continue;
      }
      task->running = false;
      NoteEnd(static_cast<int>(task - tasks_.begin()), status);
    }
  }

  void NoteEnd(int rank, int status) {
    const int code = WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0) {
      return;
    }
    const std::string how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                                : fmt::format("Exited with exit code {}", code);
    fmt::print(stderr, "srun: error: {}: task {}: {}\n", names_.node, rank, how);
    status_ = std::max(status_, code);
    if (options_.kill_on_bad_exit && !killed_) {
      killed_ = true;
      SignalAll(SIGTERM);
    }
  }

  const StepOptions& options_;
  const int number_;
  StepNames names_;
  std::vector<std::string> gpus_;
  std::array<Claimed, 2> claims_;
  sigset_t former_mask_{};
  io::Descriptor signals_;
  io::Descriptor spool_;
  std::vector<Task> tasks_;
  int status_ = 0;
  bool killed_ = false;
};

}  // namespace

std::string StepFile(const std::string& pattern, const StepNames& names) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      path += pattern[i];
      continue;
    }
    int width = 0;
    for (++i; i + 1 < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i) {
      width = std::min(10, width * 10 + (pattern[i] - '0'));
    }
    const auto padded = [width](const std::string& number) {
      return fmt::format("{:0>{}}", number, width);
    };
    switch (pattern[i]) {
      case 'j':
        path += padded(names.job);
        break;
      case 'J':
        path += fmt::format("{}.{}", names.job, names.number);
        break;
      case 'A':
        path += padded(names.array.empty() ? names.job : names.array);
        break;
      case 'a':
        path += padded(names.index.empty() ? "4294967294" : names.index);
        break;
      case 's':
        path += padded(std::to_string(names.number));
        break;
      case 't':
        path += padded(std::to_string(names.task));
        break;
      case 'n':
        path += padded("0");
        break;
      case 'x':
        path += names.name;
        break;
      case 'u':
        path += names.user;
        break;
      case 'N':
        path += names.node.substr(0, names.node.find('.'));
        break;
      case '%':
        path += '%';
        break;
      default:
        path += fmt::format("%{}", pattern[i]);
        break;
    }
  }
  return path;
}

int RunStep(const StepOptions& options) {
  for (const std::string& note : options.notes) {
    fmt::print(stderr, "srun: {}\n", note);
  }
  return RunningStep(options).Run();
}

}  // namespace trainyard::supervisor
