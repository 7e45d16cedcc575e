// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_tasks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/descriptor.h"
#include "supervisor/exec_pointers.h"
#include "supervisor/launch/node_desk.h"
#include "supervisor/process_table.h"
#include "supervisor/steps/slurm_tools.h"
#include "supervisor/steps/step_files.h"

namespace trainyard::supervisor {
namespace {

using TasksClock = std::chrono::steady_clock;
using TaskVariables = std::map<std::string, std::string>;

constexpr std::chrono::seconds kUntilItIsTold(60);  // what to start
constexpr int kMissingProgram = 2;
constexpr int kNoFile = 1;
constexpr std::size_t kPiece = std::size_t{32} << 10;
// What srun hands on, and the notice of a job, is for the tasks, not for this process.
constexpr std::array kHandedOn{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                               SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE};

struct StepPipe {
  io::Descriptor ours;
  io::Descriptor theirs;
};

StepPipe PipeTo(bool reads) {
  std::array<int, 2> ends{-1, -1};
  static_cast<void>(pipe2(ends.data(), O_CLOEXEC));
  StepPipe made{io::Descriptor(ends[reads ? 0 : 1]), io::Descriptor(ends[reads ? 1 : 0])};
  fcntl(made.ours.get(), F_SETFL, O_NONBLOCK);
  return made;
}

// Variables that are each node's own, whatever the script has made of its.
bool IsOfTheNode(const std::string& name) {
  constexpr std::array<std::string_view, 9> kNames{
      "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
      "SLURMD_NODENAME",      "SLURM_CPUS_ON_NODE",   "SLURM_GPUS_ON_NODE",
      "SLURM_JOB_GPUS",       "SLURM_MEM_PER_NODE",   "BASH_ENV"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         (name.starts_with("TRAINYARD_") && name != kFormerBashVariable);
}

TaskVariables VariablesFrom(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  TaskVariables variables;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return variables;
}

TaskVariables OwnVariables() {
  TaskVariables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    variables[std::string(text.substr(0, equals))] =
        equals == std::string_view::npos ? "" : std::string(text.substr(equals + 1));
  }
  return variables;
}

class StepTasks {
 public:
  StepTasks(StepChannel channel, const v1::StepHello& hello)
      : channel_(std::move(channel)), node_(OwnVariables()) {
    prctl(PR_SET_NAME, "step-tasks");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigprocmask(SIG_SETMASK, &taken, nullptr);
    for (const int number : kHandedOn) {
      signal(number, SIG_IGN);
    }
    signals_ = io::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    v1::StepMessage first;
    *first.mutable_hello() = hello;
    channel_.Send(first);
  }

  // Until all tasks have ended and srun knows it, or srun is gone.
  void Run() {
    while (true) {
      const bool open = channel_.Transfer();
      while (const std::optional<v1::StepMessage> message = channel_.Take()) {
        Obey(*message);
      }
      if (!open) {
        break;
      }
      Reap();
      MoveOutput();
      FeedInput();
      if (over_ && channel_.is_flushed()) {
        break;
      }
      if (!channel_.Flush() || !Wait()) {
        break;
      }
    }
    EndAll();
  }

 private:
  struct Stream {
    io::Descriptor from;
    bool is_error = false;
  };
  struct RunTask {
    int rank = 0;
    pid_t pid = -1;
    bool running = false;
    std::array<Stream, 2> streams{};
    io::Descriptor input{};
    std::string pending{};  // input on its way
  };

  void Obey(const v1::StepMessage& message) {
    if (message.has_start() && tasks_.empty()) {
      start_ = message.start();
      Prepare();
      for (const int rank : start_.ranks()) {
        StartTask(rank);
      }
    } else if (message.has_input()) {
      for (RunTask& task : tasks_) {
        if (task.input.open()) {
          task.pending += message.input().data();
        }
      }
      given_ += message.input().data().size();
      input_ends_ = input_ends_ || message.input().ends();
    } else if (message.has_signal() && message.signal() > 0) {
      for (const RunTask& task : tasks_) {
        if (task.running) {
          kill(-task.pid, message.signal());
        }
      }
    }
  }

  // What all tasks of the node have in common.
  void Prepare() {
    variables_ = VariablesFrom(start_.environment());
    const std::string former = variables_[kStepFolderVariable];
    const std::string own = node_[kStepFolderVariable];
    for (auto entry = variables_.begin(); entry != variables_.end();) {
      const std::string& name = entry->first;
      const bool gone =
          IsOfTheNode(name) && !node_.contains(name) && !name.starts_with("TRAINYARD_");
      entry = gone ? variables_.erase(entry) : std::next(entry);
    }
    for (const auto& [name, value] : node_) {
      if (IsOfTheNode(name)) {
        variables_[name] = value;
      }
    }
    std::string path;  // the tools are this node's
    for (const std::string_view folder : base::Split(variables_["PATH"], ":")) {
      path += (path.empty() ? "" : ":") + (folder == former ? own : std::string(folder));
    }
    variables_["PATH"] = path;
    if (variables_.contains("HOSTNAME")) {
      std::array<char, 256> host{};
      gethostname(host.data(), host.size() - 1);
      variables_["HOSTNAME"] = host.data();
    }
    for (const std::string_view gpu : base::Split(variables_["CUDA_VISIBLE_DEVICES"], ",")) {
      if (!gpu.empty()) {
        gpus_.emplace_back(gpu);
      }
    }
    for (const std::string_view gpu : base::Split(variables_["SLURM_JOB_GPUS"], ",")) {
      if (!gpu.empty()) {
        numbers_.emplace_back(gpu);
      }
    }
    names_ = {.job = variables_["SLURM_JOB_ID"],
              .array = variables_["SLURM_ARRAY_JOB_ID"],
              .index = variables_["SLURM_ARRAY_TASK_ID"],
              .name = variables_["SLURM_JOB_NAME"],
              .user = variables_["USER"],
              .node = variables_["SLURMD_NODENAME"],
              .number = start_.step(),
              .node_index = start_.node()};
    SetStepVariables();
  }

  void SetStepVariables() {
    std::string ranks;
    for (const int rank : start_.ranks()) {
      ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
    }
    const std::string tasks = std::to_string(start_.tasks());
    const std::string nodes = std::to_string(start_.nodes());
    const std::string step = std::to_string(start_.step());
    const std::array<std::pair<const char*, std::string>, 14> step_variables{{
        {"SLURM_NODEID", std::to_string(start_.node())},
        {"SLURM_GTIDS", ranks},
        {"SLURM_NTASKS", tasks},
        {"SLURM_NPROCS", tasks},
        {"SLURM_NNODES", nodes},
        {"SLURM_TASKS_PER_NODE", start_.tasks_per_node()},
        {"SLURM_STEP_ID", step},
        {"SLURM_STEPID", step},
        {"SLURM_STEP_NODELIST", start_.node_list()},
        {"SLURM_STEP_NUM_NODES", nodes},
        {"SLURM_STEP_NUM_TASKS", tasks},
        {"SLURM_STEP_TASKS_PER_NODE", start_.tasks_per_node()},
        {"SLURM_DISTRIBUTION", start_.distribution()},
        {"SLURM_LAUNCH_NODE_IPADDR", variables_["SLURM_LAUNCH_NODE_IPADDR"]},
    }};
    for (const auto& [name, value] : step_variables) {
      variables_[name] = value;
    }
  }

  // The GPUs that the task of that place on this node sees; the numbers are those of the node.
  void SetGpus(std::size_t place, TaskVariables& variables) const {
    if (start_.shares_gpus()) {
      if (!numbers_.empty()) {
        variables["SLURM_STEP_GPUS"] = fmt::format("{}", fmt::join(numbers_, ","));
      }
      return;
    }
    const auto each = static_cast<std::size_t>(start_.gpus_per_task());
    const auto count = static_cast<std::size_t>(start_.gpus_size());
    const std::size_t first = each > 0 ? place * each : 0;
    const std::size_t last = each > 0 ? std::min(count, first + each) : count;
    std::string visible;
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
      const auto gpu = static_cast<std::size_t>(start_.gpus(static_cast<int>(i)));
      if (gpu < numbers_.size()) {
        all += (all.empty() ? "" : ",") + numbers_[gpu];
      }
      if (i >= first && i < last && gpu < gpus_.size()) {
        visible += (visible.empty() ? "" : ",") + gpus_[gpu];
      }
    }
    for (const char* const name :
         {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) {
      variables[name] = visible;
    }
    variables["SLURM_STEP_GPUS"] = all;
  }

  [[nodiscard]] bool TakesInput(int rank) const {
    return start_.input().empty() && (start_.input_rank() == -1 || start_.input_rank() == rank);
  }

  void StartTask(int rank) {
    RunTask& task = tasks_.emplace_back();
    task.rank = rank;
    StepPipe output = PipeTo(true);
    StepPipe errors = PipeTo(true);
    StepPipe input = TakesInput(rank) ? PipeTo(false) : StepPipe{};
    const pid_t parent = getpid();
    // What comes before the task heeds it waits, as what is ignored and blocked is not lost.
    sigset_t handed_on;
    sigset_t before;
    sigemptyset(&handed_on);
    for (const int number : kHandedOn) {
      sigaddset(&handed_on, number);
    }
    sigprocmask(SIG_BLOCK, &handed_on, &before);
    task.pid = fork();
    if (task.pid != 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
    }
    if (task.pid == 0) {
      BeTask(tasks_.size() - 1, parent,
             {input.theirs.get(), output.theirs.get(), errors.theirs.get()});
    }
    if (task.pid < 0) {
      Say(rank, fmt::format("slurmstepd: error: no process: {}\n", std::strerror(errno)));
      return TellEnd(task, kNoFile << 8);
    }
    setpgid(task.pid, task.pid);
    task.running = true;
    task.streams = {Stream{std::move(output.ours), false}, Stream{std::move(errors.ours), true}};
    task.input = std::move(input.ours);
  }

  [[noreturn]] void BeTask(std::size_t place, pid_t parent, std::array<int, 3> streams) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(kMissingProgram);
    }
    for (const int number : kHandedOn) {
      signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int rank = tasks_[place].rank;
    dup2(streams[2], STDERR_FILENO);
    dup2(streams[1], STDOUT_FILENO);
    OpenFiles(rank, streams[0]);
    TaskVariables variables = variables_;
    variables["SLURM_PROCID"] = std::to_string(rank);
    variables["SLURM_LOCALID"] = std::to_string(place);
    variables["SLURM_TASK_PID"] = std::to_string(getpid());
    SetGpus(place, variables);
    EnterFolder();
    std::vector<std::string> texts;
    for (const auto& [name, value] : variables) {
      texts.push_back(fmt::format("{}={}", name, value));
    }
    const std::vector<std::string> words = WordsOf(rank);
    const std::vector<char*> command = ExecPointers(words);
    std::vector<char*> environment = ExecPointers(texts);
    environ = environment.data();  // execvp looks there for the PATH
    execvp(command.front(), command.data());
    GiveUp(kMissingProgram, fmt::format("execve(): {}: {}", words.front(), std::strerror(errno)));
  }

  [[nodiscard]] std::vector<std::string> WordsOf(int rank) const {
    for (const v1::StepProgram& program : start_.programs()) {
      if (program.rank() == rank && !program.command().empty()) {
        return {program.command().begin(), program.command().end()};
      }
    }
    return {start_.command().begin(), start_.command().end()};
  }

  [[noreturn]] static void GiveUp(int status, const std::string& why) {
    const std::string line = fmt::format("slurmstepd: error: {}\n", why);
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
    _exit(status);
  }

  void EnterFolder() const {
    const std::string& folder = start_.folder();
    if (!folder.empty() && chdir(folder.c_str()) != 0) {
      const std::string line =
          fmt::format("slurmstepd: error: couldn't chdir to `{}': {}: going to /tmp instead\n",
                      folder, std::strerror(errno));
      static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
      static_cast<void>(!chdir("/tmp"));
    }
  }

  // Names without a folder are those of the step's.
  [[nodiscard]] std::string PathOf(const std::string& pattern, int rank) const {
    StepNames names = names_;
    names.task = rank;
    const std::string path = StepFile(pattern, names);
    return path.starts_with('/') || start_.folder().empty() ? path : start_.folder() + "/" + path;
  }

  void OpenFiles(int rank, int input) const {
    const auto open_as = [&](const std::string& pattern, int flags, int as, const char* what) {
      constexpr mode_t kAll = 0666;
      const std::string path = PathOf(pattern, rank);
      const int file = open(path.c_str(), flags, kAll);
      if (file < 0) {
        GiveUp(kNoFile,
               fmt::format("Could not open {} file {}: {}", what, path, std::strerror(errno)));
      }
      dup2(file, as);
    };
    const int writes = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (start_.appends() ? 0 : O_TRUNC);
    if (input >= 0) {
      dup2(input, STDIN_FILENO);
    } else {
      open_as(start_.input().empty() ? "/dev/null" : start_.input(), O_RDONLY | O_CLOEXEC,
              STDIN_FILENO, "stdin");
    }
    if (!start_.output().empty()) {
      open_as(start_.output(), writes, STDOUT_FILENO, "stdout");
    }
    if (!start_.errors().empty()) {
      if (start_.errors() == start_.output()) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
      } else {
        open_as(start_.errors(), writes, STDERR_FILENO, "stderr");
      }
    }
  }

  void Say(int rank, std::string_view text) {
    v1::StepMessage message;
    message.mutable_output()->set_rank(rank);
    message.mutable_output()->set_is_error(true);
    message.mutable_output()->set_data(std::string(text));
    channel_.Send(message);
  }

  // Some of what a task has written. False: there is no more for now.
  bool MoveSome(const RunTask& task, Stream& stream) {
    std::array<char, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t got = read(stream.from.get(), piece.data(), piece.size());
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        stream.from.Close();
      }
      return false;
    }
    v1::StepMessage message;
    message.mutable_output()->set_rank(task.rank);
    message.mutable_output()->set_is_error(stream.is_error);
    message.mutable_output()->set_data(piece.data(), static_cast<std::size_t>(got));
    channel_.Send(message);
    return true;
  }

  void MoveOutput() {
    for (RunTask& task : tasks_) {
      for (Stream& stream : task.streams) {
        if (stream.from.open() && !channel_.is_congested()) {
          static_cast<void>(MoveSome(task, stream));
        }
      }
    }
  }

  void FeedInput() {
    std::size_t most = 0;
    for (RunTask& task : tasks_) {
      while (task.input.open() && !task.pending.empty()) {
        const ssize_t written = write(task.input.get(), task.pending.data(), task.pending.size());
        if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
          break;
        }
        if (written < 0) {  // it reads no more
          task.input.Close();
          task.pending.clear();
        } else {
          task.pending.erase(0, static_cast<std::size_t>(written));
        }
      }
      if (input_ends_ && task.pending.empty()) {
        task.input.Close();
      }
      most = std::max(most, task.pending.size());
    }
    if (const std::uint64_t taken = given_ - most; taken > told_) {
      told_ = taken;
      v1::StepMessage message;
      message.set_taken(taken);
      channel_.Send(message);
    }
  }

  void TellEnd(const RunTask& task, int wait_status) {
    v1::StepMessage message;
    message.mutable_end()->set_rank(task.rank);
    message.mutable_end()->set_wait_status(wait_status);
    ends_.push_back(std::move(message));
  }

  void Reap() {
    signalfd_siginfo signal{};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
    }
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      const auto task = std::find_if(tasks_.begin(), tasks_.end(), [pid](const RunTask& one) {
        return one.pid == pid && one.running;
      });
      if (task == tasks_.end()) {
        continue;
      }
      task->running = false;
      task->input.Close();
      task->pending.clear();
      for (Stream& stream : task->streams) {  // what it has written is there by now
        while (stream.from.open() && MoveSome(*task, stream)) {
        }
      }
      TellEnd(*task, status);
    }
    const bool any_runs =
        std::any_of(tasks_.begin(), tasks_.end(), [](const RunTask& task) { return task.running; });
    if (!any_runs && !tasks_.empty() && !over_) {
      over_ = true;
      KillAll();  // a step ends with its tasks
    }
    for (const v1::StepMessage& end : std::exchange(ends_, {})) {
      channel_.Send(end);
    }
  }

  static bool KillAll() {
    bool any = false;
    for (const Process& process : DescendantsOf(getpid())) {
      any = any || !process.dead;
      SendSignal(process, SIGKILL);
    }
    return any;
  }

  // What forks while it is killed turns up the next time.
  static void EndAll() {
    constexpr useconds_t kPause = 5000;
    while (KillAll()) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      usleep(kPause);
    }
  }

  // False: whoever has srun's port by now does not say what is to be started. srun itself would
  // have given up, too.
  [[nodiscard]] bool Wait() const {
    std::vector<pollfd> polls{channel_.Awaited(),
                              {.fd = signals_.get(), .events = POLLIN, .revents = 0}};
    for (const RunTask& task : tasks_) {
      for (const Stream& stream : task.streams) {
        if (stream.from.open() && !channel_.is_congested()) {
          polls.push_back({.fd = stream.from.get(), .events = POLLIN, .revents = 0});
        }
      }
      if (task.input.open() && !task.pending.empty()) {
        polls.push_back({.fd = task.input.get(), .events = POLLOUT, .revents = 0});
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(start_end_ - TasksClock::now());
    poll(polls.data(), polls.size(),
         tasks_.empty() ? static_cast<int>(std::max<std::int64_t>(0, left.count())) : -1);
    return !tasks_.empty() || TasksClock::now() < start_end_;
  }

  StepChannel channel_;
  TasksClock::time_point start_end_ = TasksClock::now() + kUntilItIsTold;
  TaskVariables node_;  // the environment of this process
  io::Descriptor signals_;
  v1::StepStart start_;
  TaskVariables variables_;
  StepNames names_;
  std::vector<std::string> gpus_;     // as tasks see those of the job
  std::vector<std::string> numbers_;  // those of the node
  std::vector<RunTask> tasks_;
  std::vector<v1::StepMessage> ends_;
  bool over_ = false;
  bool input_ends_ = false;
  std::uint64_t given_ = 0;  // bytes of input
  std::uint64_t told_ = 0;
};

}  // namespace

void BecomeStepTasks(StepChannel channel, const v1::StepHello& hello) {
  StepTasks(std::move(channel), hello).Run();
  _exit(0);
}

std::string TextOf(const StepCall& call) { return fmt::format("step {} {}", call.port, call.step); }

pid_t StartCalledStep(const v1::StartAttempt& start, const std::string& command) {
  const std::vector<std::string_view> words = base::Split(command, " ");
  if (words.size() != 3 || words[0] != "step") {
    return -1;
  }
  const std::optional<int> port = base::ToInteger<int>(words[1]);
  const std::optional<int> step = base::ToInteger<int>(words[2]);
  if (!port || !step) {
    return -1;
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) {
    return child;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  io::Descriptor socket = getppid() == parent ? ConnectToMaster(start, *port) : io::Descriptor();
  if (!socket.open()) {
    _exit(1);  // srun is gone
  }
  v1::StepHello hello;
  hello.set_step(*step);
  hello.set_node_rank(start.node_rank());
  BecomeStepTasks(StepChannel(std::move(socket), StepChannel::Side::kTasks, SecretOf(start)),
                  hello);
}

}  // namespace trainyard::supervisor
