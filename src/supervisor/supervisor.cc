// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/try.h"
#include "base/unix_time.h"
#include "cgroup/group.h"
#include "supervisor/attach/attachments.h"
#include "supervisor/attempt_course.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/control_server.h"
#include "supervisor/job/job_server.h"
#include "supervisor/launch/containers.h"
#include "supervisor/launch/launch_check.h"
#include "supervisor/launch/launch_command.h"
#include "supervisor/launch/launch_digest.h"
#include "supervisor/launch/node_desk.h"
#include "supervisor/launch/worker_end.h"
#include "supervisor/log_limit.h"
#include "supervisor/process_table.h"
#include "supervisor/steps/slurm_tools.h"
#include "supervisor/steps/step_log.h"
#include "supervisor/use_meter.h"
#include "supervisor/worker.h"
#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kFailed = 1;

void SayOnStderr(const std::string& what) { fmt::print(stderr, "trainyard supervise: {}\n", what); }

// All that can fail before there is anything to supervise.
struct Prepared {
  AttemptFolder folder;
  v1::StartAttempt start;
  io::Descriptor lock;
  io::Descriptor opened_folder;
  io::Descriptor control_socket;
  io::Descriptor job_socket;
  mode_t worker_mask = 0;
  std::string key;  // of the controller; empty: no launcher has started this
};

// None: the attempt is over already.
Result<std::optional<Prepared>> Prepare(AttemptFolder folder, const std::string& launch,
                                        const std::string& key) {
  std::optional<io::Descriptor> lock = folder.TryLock();
  if (!lock.has_value()) {
    return Failed(folder.path() + ": another process has its lock, or it is gone");
  }
  if (const auto report = folder.ReadReport();
      report.has_value() && report->state() == v1::AttemptReport::EXITED) {
    return std::optional<Prepared>();
  }
  ASSIGN_OR_RETURN(v1::StartAttempt start, folder.ReadStart());
  if (!launch.empty() && LaunchDigest(start.launch()) != launch) {
    return Failed("the launch spec does not match the signed digest");
  }
  constexpr mode_t kMineOnly = 077;
  const mode_t worker_mask = umask(kMineOnly);
  io::Descriptor opened = OpenFolder(folder.path());
  ASSIGN_OR_RETURN(io::Descriptor control, ListenIn(opened, "control.sock"));
  if (folder.IsShared()) {
    constexpr mode_t kWithAgent = 0660;
    fchmodat(opened.get(), "control.sock", kWithAgent, 0);
    RemoveOldLogs(folder.state_folder(), start.id().job(),
                  start.log_limit() * static_cast<std::uint64_t>(std::max(1, WorkersOf(start))));
  }
  ASSIGN_OR_RETURN(io::Descriptor job, ListenIn(opened, "job.sock"));
  return std::optional(Prepared{.folder = std::move(folder),
                                .start = std::move(start),
                                .lock = std::move(*lock),
                                .opened_folder = std::move(opened),
                                .control_socket = std::move(control),
                                .job_socket = std::move(job),
                                .worker_mask = worker_mask,
                                .key = key});
}

// An agent that is there answers sooner (stage_turns.h).
constexpr std::chrono::seconds kTurnPatience(30);

class Supervisor {
 public:
  explicit Supervisor(Prepared prepared);
  // Until no process of the attempt is left and its report is on disk.
  void Run();

 private:
  struct Worker {
    pid_t pid = 0;
    bool running = true;
  };

  void StartWorkers();
  [[nodiscard]] Status CheckStart() const;
  [[nodiscard]] std::string SocketForWorkers() const;
  void TakeSignals();
  void ReapChildren();
  void NoteEnd(pid_t child, int status);
  void Obey(const v1::SupervisorOrder& order);
  void TakeTurns();
  void ServeDesk();
  void AskToLeave(std::int64_t grace_ms);
  void Give(const AttemptCourse::Notice& notice);
  void CheckLease();
  void CheckLogs();
  void CheckMemory();
  [[nodiscard]] std::vector<std::string> EnvironmentOf(int process) const;
  [[nodiscard]] std::optional<StartFailure> PrepareMpi();
  [[nodiscard]] std::optional<StartFailure> PrepareScript();
  [[nodiscard]] std::optional<StartFailure> OpenDesk();
  [[nodiscard]] std::optional<StartFailure> StartProcess(int number);
  [[nodiscard]] bool IsWorker(const Process& process) const;
  [[nodiscard]] bool IsStepTool(const Process& process) const;
  [[nodiscard]] bool StepsRun() const;
  void SignalWorkers(int signal);
  void SendOwnNotice(int signal);
  void Decide();
  [[nodiscard]] bool WorkersRun() const;

  void TellChange();
  void WriteLastReport();

  void Wait() const;
  [[nodiscard]] Clock::time_point NextDue() const;

  AttemptFolder folder_;
  v1::StartAttempt start_;
  io::Descriptor lock_;  // held for as long as this process lives
  io::Descriptor opened_folder_;
  ControlServer control_;
  JobServer job_server_;
  mode_t worker_mask_;
  io::Descriptor signals_;
  std::string program_;           // this one's path
  std::optional<NodeDesk> desk_;  // of mpirun: until all nodes have their daemons
  Attachments attachments_;
  ContainerSignals containers_;

  std::vector<Worker> workers_;
  bool childless_ = false;  // and then without grandchildren too: they would have become children
  AttemptCourse course_{start_, Clock::now()};
  Clock::time_point next_lease_look_;
  Clock::time_point next_log_look_;
  MemoryWatch memory_;
  bool limits_memory_ = false;  // a launcher has put it into a group of its own
  bool memory_kills_told_ = false;
  Clock::time_point next_memory_look_;
  StepLog steps_{folder_.PathOf(kStepLog)};
  UseMeter use_{limits_memory_, Clock::now()};
};

Supervisor::Supervisor(Prepared prepared)
    : folder_(std::move(prepared.folder)),
      start_(std::move(prepared.start)),
      lock_(std::move(prepared.lock)),
      opened_folder_(std::move(prepared.opened_folder)),
      control_(std::move(prepared.control_socket)),
      job_server_(std::move(prepared.job_socket), start_.iterations_done(), start_.share()),
      worker_mask_(prepared.worker_mask),
      attachments_(start_, folder_,
                   {.key = std::move(prepared.key),
                    .environment = [this](int rank) { return EnvironmentOf(rank); },
                    .mask = worker_mask_}),
      containers_(start_, folder_),
      limits_memory_(folder_.IsShared()) {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  sigaddset(&taken, SIGTERM);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = io::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  std::error_code error;
  program_ = std::filesystem::read_symlink("/proc/self/exe", error).string();
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the workers become children of this process
}

void Supervisor::Run() {
  StartWorkers();
  TellChange();
  while (true) {
    // In this order: what a worker has said before it left is there once its end is seen.
    ReapChildren();
    job_server_.Serve();
    for (const v1::SupervisorOrder& order : control_.Serve()) {
      Obey(order);
    }
    TakeTurns();
    for (const v1::AttachAnswer& answer : attachments_.Serve(Clock::now())) {
      control_.Tell(answer);
    }
    ServeDesk();
    CheckLease();
    CheckLogs();
    CheckMemory();
    Decide();
    if (course_.is_killing() && childless_) {
      break;
    }
    TellChange();
    Wait();
    TakeSignals();
  }
  constexpr int kRounds = 8;  // as much as a socket holds
  for (int round = 0; round < kRounds; ++round) {
    job_server_.Serve();
  }
  for (const v1::AttachAnswer& answer : attachments_.Close(Clock::now())) {
    control_.Tell(answer);
  }
  static_cast<void>(control_.Serve());
  next_log_look_ = {};
  CheckLogs();
  RemoveContainers(start_, folder_, EnvironmentOf(0));
  WriteLastReport();
}

// ---------------------------------------------------------------------------------------- workers

Status Supervisor::CheckStart() const {
  if (start_.launch().command().empty()) {
    return Failed("the job has no command");
  }
  return WorkersOf(start_) > 0 || OnlyHolds(start_) ? Status() : Failed("the job has no GPUs");
}

std::string Supervisor::SocketForWorkers() const {
  const std::string path = folder_.PathOf("job.sock");
  return path.size() <= kMaxSocketPath
             ? path
             : fmt::format("/proc/{}/fd/{}/job.sock", getpid(), opened_folder_.get());
}

std::vector<std::string> Supervisor::EnvironmentOf(int process) const {
  return ProcessEnvironment(start_, process, folder_, SocketForWorkers());
}

// What mpirun finds when it starts.
std::optional<StartFailure> Supervisor::PrepareMpi() {
  mkdir(folder_.SharedMemoryFolder().c_str(), S_IRWXU);  // without it workers use their network
  if (start_.node_rank() > 0) {
    return std::nullopt;
  }
  if (Status written = folder_.WriteText(kHostfile, Hostfile(start_)); !written.ok()) {
    return StartFailure{kNotStarted, written.error().message, v1::AttemptReport::DISK};
  }
  return OpenDesk();
}

// Where the other nodes ask for what they are to start.
std::optional<StartFailure> Supervisor::OpenDesk() {
  if (start_.nodes() > 1 && start_.node_rank() == 0) {
    Result<NodeDesk> desk = NodeDesk::Open(start_);
    if (!desk.ok()) {
      return StartFailure{kNotStarted, desk.error().message, v1::AttemptReport::SPAWN};
    }
    desk_.emplace(std::move(desk).value());
  }
  return std::nullopt;
}

// What a script finds: itself, the commands of Slurm, and nodes that start its steps.
std::optional<StartFailure> Supervisor::PrepareScript() {
  Status written =
      OnlyHolds(start_) ? Status() : folder_.WriteText(kScript, start_.launch().batch().script());
  if (written.ok()) {
    written = MakeSlurmTools(folder_.path(), program_);
  }
  if (!written.ok()) {
    return StartFailure{kNotStarted, written.error().message, v1::AttemptReport::DISK};
  }
  return HasSteps(start_) ? OpenDesk() : std::nullopt;
}

// The others are a group of their own where the first has a terminal, and so a session.
std::optional<StartFailure> Supervisor::StartProcess(int number) {
  const std::vector<std::string> environment = EnvironmentOf(number);
  std::optional<SessionStreams> streams =
      number == 0 ? attachments_.StreamsOfWorker() : std::nullopt;
  const std::size_t leader =
      number > 0 && getpgid(workers_.front().pid) == getsid(workers_.front().pid) ? 1 : 0;
  WorkerCommand command{.command = LaunchCommand(start_, number, folder_, program_, environment),
                        .environment = environment,
                        .working_directory = start_.launch().working_directory(),
                        .log = folder_.PathOfLog(start_.first_rank() + number),
                        .group = workers_.size() <= leader ? 0 : workers_[leader].pid,
                        .mask = worker_mask_};
  if (streams) {
    const int terminal = streams->terminal ? streams->their_input.get() : -1;
    command.streams = {.input = streams->their_input.get(),
                       .output = terminal,
                       .errors = terminal,
                       .own_session = streams->terminal,
                       .terminal = streams->terminal};
  }
  const std::variant<pid_t, StartFailure> worker = StartWorker(command);
  if (const auto* failed = std::get_if<StartFailure>(&worker); failed != nullptr) {
    return *failed;
  }
  workers_.push_back({.pid = std::get<pid_t>(worker)});
  if (streams) {
    attachments_.SetWorker(*std::move(streams), workers_.back().pid);
  }
  return std::nullopt;
}

void Supervisor::StartWorkers() {
  std::optional<StartFailure> failure;
  if (const Status status = CheckStart(); !status.ok()) {
    failure = StartFailure{kNotStarted, status.error().message};
  } else {
    failure = CheckLaunch(start_, program_, EnvironmentOf(0));
  }
  if (start_.launch().launcher() == v1::LaunchSpec::MPI && !failure.has_value()) {
    failure = PrepareMpi();
  }
  if (!start_.launch().batch().script().empty() && !failure.has_value()) {
    failure = PrepareScript();
  }
  for (int number = 0; number < ProcessesOf(start_) && !failure.has_value(); ++number) {
    failure = StartProcess(number);
  }
  if (failure.has_value()) {
    return course_.NoteNotStarted(*failure, base::UnixNow());
  }
  course_.NoteStarted();
  if (workers_.empty()) {
    return;
  }
  const bool has_terminal = getsid(workers_.front().pid) != getsid(0);
  const std::optional<ProcessGroup> group =
      ProcessGroup::Of(has_terminal ? getpid() : workers_.front().pid);
  if (Status written = group ? folder_.WriteGroup(*group) : Status(); !written.ok()) {
    SayOnStderr(written.error().message);
  }
}

bool Supervisor::WorkersRun() const {
  // A script that has had notice ends at once, its steps take the time that they have.
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; }) ||
         (HasSteps(start_) && course_.is_asked_to_leave() && StepsRun());
}

bool Supervisor::StepsRun() const {
  const std::vector<Process> all = DescendantsOf(getpid());
  return std::any_of(all.begin(), all.end(), [this](const Process& process) {
    return !process.dead && IsStepTool(process);
  });
}

// srun hands on what others send it: a notice, or a signal for all, the tasks get without it.
bool Supervisor::IsStepTool(const Process& process) const {
  return NameOf(process) == kStepTool && ProgramOf(process) == program_;
}

void Supervisor::TakeSignals() {
  signalfd_siginfo signal{};
  while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
    if (signal.ssi_signo == SIGTERM) {  // the machine goes down, say
      AskToLeave(start_.grace());
    }
  }
}

// The agent extends the lease by writing the file; the file is read again when the lease should be
// over.
void Supervisor::CheckLease() {
  constexpr Duration kPause = std::chrono::seconds(5);
  if (course_.is_asked_to_leave() || Clock::now() < next_lease_look_) {
    return;
  }
  Duration left = kPause;
  if (const std::optional<Lease> lease = ReadLease(folder_.state_folder())) {
    left = lease->end - TimeSinceBoot();
    if (left.count() <= 0) {
      AskToLeave(std::chrono::duration_cast<milliseconds>(lease->grace).count());
    }
  }
  next_lease_look_ = Clock::now() + std::min(left, kPause);
}

void Supervisor::CheckLogs() {
  constexpr Duration kPause = std::chrono::seconds(1);
  if (start_.log_limit() == 0 || Clock::now() < next_log_look_) {
    return;
  }
  for (int number = 0; number < ProcessesOf(start_); ++number) {
    TrimLog(folder_.PathOfLog(start_.first_rank() + number), start_.log_limit());
  }
  next_log_look_ = Clock::now() + kPause;
}

void Supervisor::CheckMemory() {
  const bool due = course_.has_failed() || Clock::now() >= next_memory_look_;
  if (!limits_memory_ || !due || memory_kills_told_) {
    return;
  }
  next_memory_look_ = Clock::now() + std::chrono::seconds(1);
  if (cgroup::MemoryKillsAroundMe() > 0) {
    memory_kills_told_ = true;
    course_.NoteMemoryKill(base::UnixNow(), cgroup::MemoryAroundMe());
  }
}

void Supervisor::ReapChildren() {
  int status = 0;
  pid_t child = 0;
  while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
    NoteEnd(child, status);
  }
  childless_ = child < 0 && errno == ECHILD;
}

void Supervisor::NoteEnd(pid_t child, int status) {
  const int exit_code = ExitCodeOf(status);
  if (attachments_.NoteEnd(child, exit_code, Clock::now()) ||
      containers_.NoteEnd(child, exit_code)) {
    return;
  }
  const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                   [child](const Worker& w) { return w.pid == child; });
  if (worker == workers_.end() || !worker->running) {
    return attachments_.NoteOrphansEnd(child);
  }
  worker->running = false;
  course_.NoteEnd(exit_code, base::UnixNow(), [&] {
    const auto rank = start_.first_rank() + std::distance(workers_.begin(), worker);
    return TextOf({.job = start_.id().job(),
                   .rank = rank,
                   .status = status,
                   .log = folder_.PathOfLog(static_cast<int>(rank)),
                   .folder = start_.launch().working_directory()},
                  memory_);
  });
}

void Supervisor::Decide() {
  const AttemptCourse::Todo todo =
      course_.Decide(WorkersRun(), childless_, job_server_.training(), Clock::now());
  if (todo.notice) {
    Give(*todo.notice);
  }
  if (todo.kill) {
    for (const Process& process : DescendantsOf(getpid())) {
      SendSignal(process, SIGKILL);
    }
  }
}

void Supervisor::Obey(const v1::SupervisorOrder& order) {
  if (order.has_stop()) {
    AskToLeave(order.stop().grace());
  } else if (order.has_tune()) {
    job_server_.Tune(order.tune().share());
  } else if (order.has_go()) {
    job_server_.Go();
  } else if (order.has_attach()) {
    attachments_.Take(order.attach(), Clock::now());
  } else if (order.has_signal() && course_.has_started()) {
    SignalWorkers(order.signal());
  }
}

// Whose turn it is among several attempts the agent says. An attempt that takes no turns, that has
// no agent, or whose agent has not answered for too long, goes on.
void Supervisor::TakeTurns() {
  const bool asks = start_.has_turns() && control_.has_agent();
  for (const v1::StageTurn& turn : job_server_.stages().TakeTurns()) {
    if (asks) {
      control_.Tell(turn);
    }
  }
  const std::optional<Clock::time_point> since = job_server_.stages().waits_since();
  if (since.has_value() && (!asks || Clock::now() >= *since + kTurnPatience)) {
    job_server_.Go();
  }
}

void Supervisor::ServeDesk() {
  if (desk_.has_value()) {
    desk_->Serve();
    if (const std::string refusal = desk_->TakeRefusal(); !refusal.empty()) {
      SayOnStderr(refusal);
    }
    if (desk_->done() && start_.launch().launcher() == v1::LaunchSpec::MPI) {
      desk_.reset();  // the port is the workers' now
    }
  }
}

void Supervisor::AskToLeave(std::int64_t grace_ms) {
  if (const auto notice = course_.AskToLeave(grace_ms, Clock::now())) {
    Give(*notice);
  }
}

void Supervisor::Give(const AttemptCourse::Notice& notice) {
  job_server_.GiveNotice(notice.end);
  if (notice.is_first && notice.has_time && !job_server_.training().no_signals) {
    const int own = start_.launch().batch().notice();
    own > 0 ? SendOwnNotice(own) : SignalWorkers(SIGTERM);
  }
  if (OnlyHolds(start_) && notice.is_first) {
    for (const Worker& worker : workers_) {
      if (worker.running) {
        kill(worker.pid, SIGTERM);  // it leaves when no step is left
      }
    }
  }
}

// As sbatch --signal says: to the script alone (B:), in each worker that runs it, or to its steps
// alone.
void Supervisor::SendOwnNotice(int signal) {
  if (OnlyHolds(start_) && start_.launch().batch().notice_to_script()) {
    return;
  }
  if (workers_.empty() || OnlyHolds(start_) || start_.launch().has_container()) {
    return SignalWorkers(signal);
  }
  for (const Process& process : DescendantsOf(getpid())) {
    const bool is_script =
        std::any_of(workers_.begin(), workers_.end(),
                    [&process](const Worker& worker) { return worker.pid == process.pid; });
    if (start_.launch().batch().notice_to_script() ? is_script : IsWorker(process) && !is_script) {
      SendSignal(process, signal);
    }
  }
}

// Whether a notice is meant for the process: it is one of the workers' process group, or, where
// these have a launcher, anything but that. mpirun and torchrun would kill their workers long
// before the grace period is over.
bool Supervisor::IsWorker(const Process& process) const {
  const pid_t first = workers_.front().pid;
  if (attachments_.Has(process.session)) {
    return false;
  }
  if (OnlyHolds(start_)) {
    return process.pid != first;
  }
  if (HasSteps(start_)) {  // the script, the tasks of its steps, and all that they have started
    return !IsStepTool(process);
  }
  switch (start_.launch().launcher()) {
    case v1::LaunchSpec::TORCHRUN:
      return process.pid != first;
    case v1::LaunchSpec::MPI:  // its workers have groups of their own
      return process.group != first;
    default:  // the first may have a session of its own, for its terminal
      return process.group == first || process.session == first ||
             (workers_.size() > 1 && process.group == workers_[1].pid);
  }
}

// Signals each process by itself: the number of a group alone could be another group's by now.
void Supervisor::SignalWorkers(int signal) {
  if (workers_.empty()) {
    return;
  }
  if (start_.launch().has_container() && !OnlyHolds(start_)) {
    int number = 0;
    for (const Worker& worker : workers_) {
      if (worker.running) {
        containers_.Send(number, worker.pid, signal, EnvironmentOf(number));
      }
      ++number;
    }
    return;
  }
  const std::vector<Process> all = DescendantsOf(getpid());
  const bool has_workers =
      std::any_of(all.begin(), all.end(), [this](const Process& p) { return IsWorker(p); });
  for (const Process& process : all) {
    // A launcher that has not started any is not to do so.
    if (has_workers ? IsWorker(process)
                    : !OnlyHolds(start_) && process.group == workers_.front().pid) {
      SendSignal(process, signal);
    }
  }
}

// ---------------------------------------------------------------------------------------- reports

void Supervisor::TellChange() {
  if (steps_.ReadIfDue(Clock::now())) {
    course_.SetSteps(steps_.records());
  }
  use_.LookIfDue(Clock::now());
  course_.SetUse(use_.use());
  const std::optional<AttemptCourse::Change> change =
      course_.TakeChange(job_server_.training(), job_server_.stages().seconds(), Clock::now());
  if (!change) {
    return;
  }
  if (const Status written = change->is_saved ? folder_.WriteReport(change->report) : Status();
      !written.ok()) {
    SayOnStderr(written.error().message);
  }
  control_.Tell(change->report);
}

void Supervisor::WriteLastReport() {
  if (steps_.Read()) {
    course_.SetSteps(steps_.records());
  }
  use_.Look();
  course_.SetUse(use_.use());
  const v1::AttemptReport report =
      course_.LastReport(job_server_.training(), job_server_.stages().seconds());
  // A full disk may well have been filled by the job and be cleared now that it has ended.
  constexpr int kTries = 60;
  for (int tries = 0; tries < kTries; ++tries) {
    const Status written = folder_.WriteReport(report);
    if (written.ok()) {
      return;
    }
    SayOnStderr(written.error().message);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// ---------------------------------------------------------------------------------------- waiting

Clock::time_point Supervisor::NextDue() const {
  Clock::time_point due = std::min(course_.next_due(), use_.next_due());
  if (!course_.is_asked_to_leave()) {
    due = std::min(due, next_lease_look_);
  }
  if (start_.log_limit() > 0) {
    due = std::min(due, next_log_look_);
  }
  if (limits_memory_ && !memory_kills_told_) {
    due = std::min(due, next_memory_look_);
  }
  if (HasSteps(start_) && !OnlyHolds(start_)) {
    due = std::min(due, steps_.next_due());
  }
  if (const auto since = job_server_.stages().waits_since(); since.has_value()) {
    due = std::min(due, *since + kTurnPatience);
  }
  if (const auto attached = attachments_.NextDue(); attached.has_value()) {
    due = std::min(due, *attached);
  }
  return due;
}

void Supervisor::Wait() const {
  std::vector<pollfd> polls{{.fd = signals_.get(), .events = POLLIN}};
  job_server_.AddAwaited(polls);
  control_.AddAwaited(polls);
  attachments_.AddAwaited(polls);
  if (desk_.has_value()) {
    desk_->AddAwaited(polls);
  }
  constexpr std::int64_t kLongest = 60'000;
  std::int64_t timeout = kLongest;
  if (const Clock::time_point due = NextDue(); due != Clock::time_point::max()) {
    const std::int64_t left = std::chrono::ceil<milliseconds>(due - Clock::now()).count();
    timeout = std::clamp<std::int64_t>(left, 0, kLongest);
  }
  poll(polls.data(), polls.size(), static_cast<int>(timeout));
}

// What goes wrong from here on is told in supervisor.log.
bool RedirectOutput(const AttemptFolder& folder) {
  constexpr mode_t kMine = 0600;
  const io::Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::string path = folder.PathOf("supervisor.log");
  const io::Descriptor log(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMine));
  folder.Share(log.get());
  return dup2(nothing.get(), STDIN_FILENO) >= 0 && dup2(log.get(), STDOUT_FILENO) >= 0 &&
         dup2(log.get(), STDERR_FILENO) >= 0;
}

}  // namespace

int RunSupervisor(const std::string& attempt_folder, const std::string& launch,
                  const std::string& key) {
  close_range(STDERR_FILENO + 1, ~0U, 0);  // descriptors of the caller are not kept open
  Result<AttemptFolder> folder = AttemptFolder::At(attempt_folder);
  if (!folder.ok()) {
    SayOnStderr(folder.error().message);
    return kFailed;
  }
  if (!RedirectOutput(folder.value())) {
    return kFailed;
  }
  Result<std::optional<Prepared>> prepared = Prepare(std::move(folder).value(), launch, key);
  if (!prepared.ok()) {
    SayOnStderr(prepared.error().message);
    return kFailed;
  }
  if (!prepared.value().has_value()) {
    return 0;
  }
  // The lock belongs to the open file: it passes to the child unbroken.
  const pid_t child = fork();
  if (child != 0) {
    _exit(child > 0 ? 0 : kFailed);
  }
  setsid();
  Supervisor(*std::move(prepared).value()).Run();
  return 0;
}

}  // namespace trainyard::supervisor
