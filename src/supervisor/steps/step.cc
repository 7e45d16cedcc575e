// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "io/descriptor.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/launch/node_desk.h"
#include "supervisor/steps/slurm_tools.h"
#include "supervisor/steps/step_channel.h"
#include "supervisor/steps/step_environment.h"
#include "supervisor/steps/step_files.h"
#include "supervisor/steps/step_layout.h"
#include "supervisor/steps/step_log.h"
#include "supervisor/steps/step_programs.h"
#include "supervisor/steps/step_tasks.h"

namespace trainyard::supervisor {
namespace {

using StepClock = std::chrono::steady_clock;

constexpr int kBySignal = 128;
constexpr std::chrono::seconds kUntilTheyCall(60);
constexpr std::chrono::seconds kKillWait(30);        // from TERM to KILL of --kill-on-bad-exit
constexpr std::chrono::seconds kUntilAsked(1);       // an interrupt after it asks again
constexpr std::chrono::milliseconds kUntilTold(50);  // ends that are told in one line
constexpr std::uint64_t kMostInput = std::uint64_t{256} << 10;  // that tasks have not taken yet

void WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EAGAIN) {
      pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
    } else if (written < 0 && errno != EINTR) {
      return;  // nobody reads it
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, written)));
  }
}

void Complain(const std::string& what) {
  const std::string line = fmt::format("srun: {}\n", what);
  WriteAll(STDERR_FILENO, line);
}

int PortOf(const io::Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// The nodes of the job, by the attempt's start and by the variables that its script has.
std::vector<JobNode> NodesOfJob(const v1::StartAttempt& start) {
  std::vector<JobNode> nodes;
  const auto names = base::ExpandNames(JobVariable("SLURM_JOB_NODELIST"));
  const std::vector<int> cpus = NumbersOf(JobVariable("SLURM_JOB_CPUS_PER_NODE"));
  const std::vector<int> tasks = NumbersOf(JobVariable("SLURM_TASKS_PER_NODE"));
  const auto at = [](const std::vector<int>& list, std::size_t i) {
    return i < list.size() ? list[i] : 0;
  };
  const auto count = static_cast<std::size_t>(std::max(1, start.nodes()));
  for (std::size_t i = 0; i < count; ++i) {
    JobNode& node = nodes.emplace_back();
    if (names.ok() && i < names.value().size()) {
      node.name = names.value()[i];
    }
    node.cpus = at(cpus, i) == 0 ? 0 : std::max(at(cpus, i), at(tasks, i));
    const auto place = static_cast<int>(i);
    node.gpus = place < start.node_gpus_size() ? start.node_gpus(place) : 0;
    if (place == start.node_rank()) {  // the script may have taken some away from its steps
      const std::string visible = JobVariable("CUDA_VISIBLE_DEVICES");
      node.gpus = visible.empty() ? 0 : static_cast<int>(base::Split(visible, ",").size());
    }
  }
  return nodes;
}

std::string FoldedRanks(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  names.reserve(ranks.size());
  for (const int rank : ranks) {
    names.push_back(std::to_string(rank));
  }
  std::string folded = base::FoldNames(names);
  std::erase_if(folded, [](char c) { return c == '[' || c == ']'; });
  return folded;
}

class RunningStep {
 public:
  RunningStep(const StepOptions& options, v1::StartAttempt start)
      : options_(options),
        start_(std::move(start)),
        job_(NodesOfJob(start_)),
        claims_(JobVariable(kStepFolderVariable) + "/step-claims") {}

  int Run() {
    if (!Place()) {  // while it waits, a signal ends it
      return 1;
    }
    number_ = TakeStepNumber(JobVariable(kStepFolderVariable));
    ApplyExport(options_.exported);
    Begin();
    if (!OpenFiles()) {
      return 1;
    }
    const v1::StepRecord record = BegunStep(options_, nodes_.front().start);
    WriteStepRecord(JobVariable(kStepFolderVariable), record);
    const int status = RunTasks();
    WriteStepRecord(JobVariable(kStepFolderVariable), EndedStep(record, status));
    return status;
  }

 private:
  int RunTasks() {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      sigaddset(&taken, signal);
    }
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_ = io::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!CallOthers() || !StartHere()) {
      return 1;  // those that run see that it is gone
    }
    while (std::any_of(nodes_.begin(), nodes_.end(),
                       [](const NodeOfStep& node) { return !node.over(); })) {
      Wait();
      Serve();
    }
    TellEnds(true);
    FlushLines();
    claims_.ReleaseAll();  // its process of this node may have them a moment longer
    return status_;
  }

  struct NodeOfStep {
    v1::StepStart start;
    std::string name;
    int job_place = 0;
    std::optional<StepChannel> channel{};
    std::vector<int> running{};  // ranks
    bool lost = false;
    [[nodiscard]] bool over() const { return running.empty() || lost; }
  };
  struct UntoldEnds {
    std::string node;
    std::string how;
    std::vector<int> ranks;
  };

  bool Place() {
    for (bool told = false;;) {
      const Result<StepLayout> layout = PlaceStep(options_, job_, claims_);
      if (layout.ok()) {
        layout_ = layout.value();
        return true;
      }
      if (layout.error().code != ErrorCode::kUnavailable) {
        Complain(fmt::format("error: Unable to create step for job {}: {}",
                             JobVariable("SLURM_JOB_ID"), layout.error().message));
        return false;
      }
      if (!std::exchange(told, true)) {
        Complain(
            fmt::format("Job {} step creation temporarily disabled, retrying (Requested nodes are "
                        "busy)",
                        JobVariable("SLURM_JOB_ID")));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  // What each node is told.
  void Begin() {
    v1::StepStart common;
    common.set_step(number_);
    for (const std::string& word : options_.command) {
      common.add_command(word);
    }
    for (char** entry = environ; *entry != nullptr; ++entry) {
      common.add_environment(*entry);
    }
    std::array<char, 4096> here{};
    const std::string folder = getcwd(here.data(), here.size()) == nullptr ? "" : here.data();
    common.set_folder(options_.folder.empty() || options_.folder.starts_with('/')
                          ? (options_.folder.empty() ? folder : options_.folder)
                          : folder + "/" + options_.folder);
    common.set_tasks(options_.tasks);
    common.set_nodes(static_cast<int>(layout_.parts.size()));
    common.set_distribution(options_.cyclic ? "cyclic" : "block");
    common.set_shares_gpus(options_.gpus + options_.gpus_per_node + options_.gpus_per_task == 0);
    common.set_gpus_per_task(options_.gpus_per_task);
    common.set_appends(options_.appends);
    SetStreams(common);
    std::vector<std::string> names;
    std::vector<int> counts;
    for (const NodePart& part : layout_.parts) {
      names.push_back(job_[static_cast<std::size_t>(part.node)].name);
      counts.push_back(static_cast<int>(part.ranks.size()));
    }
    common.set_node_list(base::FoldNames(names));
    common.set_tasks_per_node(RunsOf(counts));
    for (const NodePart& part : layout_.parts) {
      NodeOfStep& node = nodes_.emplace_back();
      node.start = common;
      node.start.set_node(static_cast<int>(nodes_.size()) - 1);
      node.start.mutable_ranks()->Assign(part.ranks.begin(), part.ranks.end());
      node.start.mutable_gpus()->Assign(part.gpus.begin(), part.gpus.end());
      PutStepPrograms(options_.programs, node.start);
      node.name = job_[static_cast<std::size_t>(part.node)].name;
      node.job_place = part.node;
      node.running = part.ranks;
    }
  }

  void SetStreams(v1::StepStart& common) {
    common.set_input_rank(-1);
    if (options_.input == "none") {
      common.set_input_rank(-2);
    } else if (const auto only = base::ToInteger<int>(options_.input)) {
      common.set_input_rank(*only);
    } else if (!options_.input.empty() && options_.input != "all") {
      common.set_input(options_.input);
    }
    reads_input_ = common.input().empty() && common.input_rank() != -2;
    const auto set = [&](const std::string& pattern, std::string* theirs, std::string& own,
                         std::optional<int>& only) {
      if (pattern == "none") {
        *theirs = "/dev/null";
      } else if (const auto rank = base::ToInteger<int>(pattern)) {
        only = *rank;
      } else if (IsOfEachTask(pattern)) {
        *theirs = pattern;
      } else if (pattern != "all") {
        own = pattern;
      }
    };
    set(options_.output, common.mutable_output(), output_file_, only_output_);
    if (options_.errors.empty()) {
      common.set_errors(common.output());
      errors_file_ = output_file_;
      only_errors_ = only_output_;
    } else {
      set(options_.errors, common.mutable_errors(), errors_file_, only_errors_);
    }
  }

  // Those that all tasks write to.
  bool OpenFiles() {
    const StepNames names{.job = JobVariable("SLURM_JOB_ID"),
                          .array = JobVariable("SLURM_ARRAY_JOB_ID"),
                          .index = JobVariable("SLURM_ARRAY_TASK_ID"),
                          .name = JobVariable("SLURM_JOB_NAME"),
                          .user = JobVariable("USER"),
                          .node = JobVariable("SLURMD_NODENAME"),
                          .number = number_};
    const auto open_one = [&](const std::string& pattern, const char* what, io::Descriptor& file) {
      constexpr mode_t kAll = 0666;
      std::string path = StepFile(pattern, names);
      if (!path.starts_with('/') && !options_.folder.empty()) {
        path = nodes_.front().start.folder() + "/" + path;
      }
      file = io::Descriptor(
          open(path.c_str(),
               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (options_.appends ? 0 : O_TRUNC), kAll));
      if (!file.open()) {
        Complain(
            fmt::format("error: Could not open {} file: {}: {}", what, std::strerror(errno), path));
      }
      return file.open();
    };
    if (!output_file_.empty() && !open_one(output_file_, "stdout", output_)) {
      return false;
    }
    if (errors_file_.empty() || errors_file_ == output_file_) {
      return true;
    }
    return open_one(errors_file_, "stderr", errors_);
  }

  [[nodiscard]] int TargetOf(bool is_error) const {
    if (!is_error) {
      return output_.open() ? output_.get() : STDOUT_FILENO;
    }
    if (errors_.open()) {
      return errors_.get();
    }
    return !errors_file_.empty() && output_.open() ? output_.get() : STDERR_FILENO;
  }

  // The tasks of the script's own node.
  bool StartHere() {
    for (NodeOfStep& node : nodes_) {
      if (node.job_place != start_.node_rank()) {
        continue;
      }
      std::array<int, 2> ends{-1, -1};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        Complain(fmt::format("error: no socket: {}", std::strerror(errno)));
        return false;
      }
      io::Descriptor ours(ends[0]);
      io::Descriptor theirs(ends[1]);
      const pid_t child = fork();
      if (child < 0) {
        Complain(fmt::format("error: no process: {}", std::strerror(errno)));
        return false;
      }
      if (child == 0) {
        ours.Close();
        listener_.Close();
        signals_.Close();
        output_.Close();
        errors_.Close();
        const io::Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
        for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
          dup2(nothing.get(), standard);
        }
        BecomeStepTasks(StepChannel(std::move(theirs), StepChannel::Side::kTasks, SecretOf(start_)),
                        HelloOf(node));
      }
      node.channel.emplace(std::move(ours), StepChannel::Side::kSrun, SecretOf(start_));
      SendStart(node);
    }
    return true;
  }

  [[nodiscard]] v1::StepHello HelloOf(const NodeOfStep& node) const {
    v1::StepHello hello;
    hello.set_step(number_);
    hello.set_node_rank(node.job_place);
    return hello;
  }

  static void SendStart(NodeOfStep& node) {
    v1::StepMessage message;
    *message.mutable_start() = node.start;
    node.channel->Send(message);
  }

  // Has the other nodes call.
  bool CallOthers() {
    const auto is_here = [this](const NodeOfStep& node) {
      return node.job_place == start_.node_rank();
    };
    if (std::all_of(nodes_.begin(), nodes_.end(), is_here)) {
      return true;
    }
    listener_ = ListenAtMaster(start_, 0);
    if (!listener_.open()) {
      Complain(fmt::format("error: no port for the other nodes: {}", std::strerror(errno)));
      return false;
    }
    const std::string text = TextOf(StepCall{.port = PortOf(listener_), .step = number_});
    for (const NodeOfStep& node : nodes_) {
      if (is_here(node)) {
        continue;
      }
      if (const Status brought = BringNodeCommand(start_, node.job_place, text); !brought.ok()) {
        Complain(fmt::format("error: Task launch for StepId={}.{} failed on node {}: {}",
                             JobVariable("SLURM_JOB_ID"), number_, node.name,
                             brought.error().message));
        return false;
      }
    }
    call_end_ = StepClock::now() + kUntilTheyCall;
    return true;
  }

  [[nodiscard]] bool MayRead() const {
    return reads_input_ && given_ < taken_ + kMostInput &&
           std::all_of(nodes_.begin(), nodes_.end(), [](const NodeOfStep& node) {
             return node.over() || (node.channel && !node.channel->is_congested());
           });
  }

  void Wait() const {
    std::vector<pollfd> polls{
        {.fd = signals_.get(), .events = POLLIN, .revents = 0},
        {.fd = listener_.get(), .events = POLLIN, .revents = 0},
        {.fd = MayRead() ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    for (const NodeOfStep& node : nodes_) {
      if (node.channel && !node.lost) {
        polls.push_back(node.channel->Awaited());
      }
    }
    for (const StepChannel& caller : callers_) {
      polls.push_back(caller.Awaited());
    }
    std::int64_t timeout = -1;
    for (const auto& due : {call_end_, kill_at_, tell_at_}) {
      if (due) {
        const auto left = std::max<std::int64_t>(
            0, std::chrono::ceil<std::chrono::milliseconds>(*due - StepClock::now()).count());
        timeout = timeout < 0 ? left : std::min(timeout, left);
      }
    }
    poll(polls.data(), polls.size(), static_cast<int>(timeout));
  }

  void Serve() {
    TakeSignals();
    TakeCallers();
    for (NodeOfStep& node : nodes_) {
      if (node.channel && !node.lost) {
        ServeNode(node);
      }
    }
    ReadInput();
    const StepClock::time_point now = StepClock::now();
    if (kill_at_ && now >= *kill_at_) {
      kill_at_.reset();
      SignalAll(SIGKILL);
    }
    if (call_end_ && now >= *call_end_) {
      call_end_.reset();
      for (NodeOfStep& node : nodes_) {
        if (!node.channel) {
          Lose(node, fmt::format("node {} has not answered within {} s", node.name,
                                 kUntilTheyCall.count()));
        }
      }
    }
    TellEnds(tell_at_ && now >= *tell_at_);
  }

  // Those who call are nodes of the step only once they have proved it. Strangers, however many and
  // silent, keep none out: the oldest of them has to go.
  void TakeCallers() {
    constexpr std::size_t kMost = 256;
    if (callers_.size() >= kMost) {
      Refuse(callers_.front());
      callers_.pop_front();
    }
    while (listener_.open() && callers_.size() < kMost) {
      io::Descriptor come(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!come.open()) {
        break;
      }
      callers_.emplace_back(std::move(come), StepChannel::Side::kSrun, SecretOf(start_));
    }
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      const bool open = caller->Transfer();
      const std::optional<v1::StepMessage> first = caller->Take();
      if (!first && open && !caller->is_broken()) {
        ++caller;
        continue;
      }
      if (caller->is_broken()) {
        Refuse(*caller);
      }
      if (first && first->has_hello() && first->hello().step() == number_) {
        Welcome(first->hello().node_rank(), std::move(*caller));
      }
      caller = callers_.erase(caller);
    }
    if (call_end_ && std::all_of(nodes_.begin(), nodes_.end(), [](const NodeOfStep& node) {
          return node.channel || node.lost;
        })) {
      call_end_.reset();
      listener_.Close();
      callers_.clear();
    }
  }

  // Told once, so that nobody fills the script's output.
  void Refuse(const StepChannel& caller) {
    if (!std::exchange(refused_, true)) {
      Complain(
          fmt::format("warning: refused a call from {}: without the secret of job {} nobody "
                      "has a part in its steps; of further ones nothing is said",
                      PeerOf(caller.Awaited().fd), JobVariable("SLURM_JOB_ID")));
    }
  }

  void Welcome(int node_rank, StepChannel channel) {
    for (NodeOfStep& node : nodes_) {
      if (node.job_place == node_rank && !node.channel && !node.lost) {
        node.channel.emplace(std::move(channel));
        SendStart(node);
        for (const int signal : signals_before_) {
          SendSignalTo(node, signal);
        }
        return;
      }
    }
  }

  void ServeNode(NodeOfStep& node) {
    const bool open = node.channel->Transfer();
    while (const std::optional<v1::StepMessage> message = node.channel->Take()) {
      if (message->has_output()) {
        Print(message->output());
      } else if (message->has_taken()) {
        by_node_[node.job_place] = message->taken();
      } else if (message->has_end()) {
        NoteEnd(node, message->end());
      }
    }
    taken_ = given_;
    for (const NodeOfStep& one : nodes_) {
      if (!one.over()) {
        taken_ = std::min(taken_, by_node_[one.job_place]);
      }
    }
    if (!open && !node.over()) {
      Lose(node, fmt::format("node {} is lost, or its part of the job has ended", node.name));
    }
  }

  void Lose(NodeOfStep& node, const std::string& why) {
    node.lost = true;
    Complain(fmt::format("error: {}; tasks {} are gone", why, FoldedRanks(node.running)));
    status_ = std::max(status_, 1);
    SignalAll(SIGKILL);
  }

  void ReadInput() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (!MayRead() || poll(&input, 1, 0) <= 0) {
      return;
    }
    constexpr std::size_t kPiece = std::size_t{32} << 10;
    std::array<char, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t got = read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return;
    }
    v1::StepMessage message;
    if (got > 0) {
      message.mutable_input()->set_data(piece.data(), static_cast<std::size_t>(got));
      given_ += static_cast<std::uint64_t>(got);
    } else {
      message.mutable_input()->set_ends(true);
      reads_input_ = false;
    }
    for (NodeOfStep& node : nodes_) {
      if (!node.over()) {
        node.channel->Send(message);
      }
    }
  }

  void Print(const v1::StepOutput& output) {
    const std::optional<int>& only = output.is_error() ? only_errors_ : only_output_;
    if (only && *only != output.rank()) {
      return;
    }
    const int target = TargetOf(output.is_error());
    if (!options_.label) {
      return WriteAll(target, output.data());
    }
    std::string& begun = lines_[{output.rank(), output.is_error()}];
    begun += output.data();
    std::string text;
    std::size_t from = 0;
    for (std::size_t end = 0; (end = begun.find('\n', from)) != std::string::npos; from = end + 1) {
      text += LabelOf(output.rank()) + begun.substr(from, end - from) + "\n";
    }
    begun.erase(0, from);
    WriteAll(target, text);
  }

  // As wide as that of the last rank.
  [[nodiscard]] std::string LabelOf(int rank) const {
    return fmt::format("{:>{}}: ", rank, std::to_string(options_.tasks - 1).size());
  }

  void FlushLines() {
    for (const auto& [of, begun] : lines_) {
      if (!begun.empty()) {
        WriteAll(TargetOf(of.second), LabelOf(of.first) + begun + "\n");
      }
    }
  }

  // ---------------------------------------------------------------------------- signals and ends

  void TakeSignals() {
    signalfd_siginfo signal{};
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) {
      if (signal.ssi_signo == SIGCHLD) {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
      } else if (signal.ssi_signo == SIGINT && options_.confirms_interrupt) {
        TakeInterrupt();
      } else {
        SignalAll(static_cast<int>(signal.ssi_signo));
      }
    }
  }

  // The first one only tells how far the tasks are; another one soon after it ends them.
  void TakeInterrupt() {
    const std::string step = fmt::format("StepId={}.{}", JobVariable("SLURM_JOB_ID"), number_);
    const StepClock::time_point now = StepClock::now();
    if (!interrupted_ || now - *interrupted_ > kUntilAsked) {
      interrupted_ = now;
      Complain("interrupt (one more within 1 sec to abort)");
      std::vector<int> running;
      for (const NodeOfStep& node : nodes_) {
        running.insert(running.end(), node.running.begin(), node.running.end());
      }
      TellState(step, std::move(running), "running");
      TellState(step, failed_, "exited abnormally");
      return TellState(step, succeeded_, "exited");
    }
    Complain("sending Ctrl-C to " + step);
    Complain("forcing job termination");
    Complain(fmt::format("Job step aborted: Waiting up to {} seconds for job step to finish.",
                         kKillWait.count() + 2));
    SignalAll(SIGINT);
    SignalAll(SIGKILL);
  }

  static void TellState(const std::string& step, std::vector<int> ranks, const char* state) {
    if (!ranks.empty()) {
      std::sort(ranks.begin(), ranks.end());
      Complain(fmt::format("{} task{} {}: {}", step, ranks.size() > 1 ? "s" : "",
                           FoldedRanks(ranks), state));
    }
  }

  static void SendSignalTo(NodeOfStep& node, int signal) {
    v1::StepMessage message;
    message.set_signal(signal);
    node.channel->Send(message);
  }

  void SignalAll(int signal) {
    for (NodeOfStep& node : nodes_) {
      if (node.channel && !node.over()) {
        SendSignalTo(node, signal);
      }
    }
    if (call_end_) {
      signals_before_.push_back(signal);
    }
  }

  void NoteEnd(NodeOfStep& node, const v1::StepEnd& end) {
    if (std::erase(node.running, end.rank()) == 0) {
      return;
    }
    const int status = end.wait_status();
    const int code = WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
    (code == 0 ? succeeded_ : failed_).push_back(end.rank());
    if (code == 0) {
      return;
    }
    const std::string how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                                : fmt::format("Exited with exit code {}", code);
    auto same = std::find_if(untold_.begin(), untold_.end(), [&](const UntoldEnds& ends) {
      return ends.node == node.name && ends.how == how;
    });
    if (same == untold_.end()) {
      same = untold_.insert(untold_.end(), {.node = node.name, .how = how, .ranks = {}});
    }
    same->ranks.push_back(end.rank());
    if (!tell_at_) {
      tell_at_ = StepClock::now() + kUntilTold;
    }
    status_ = std::max(status_, code);
    if (options_.kill_on_bad_exit && !killed_) {
      killed_ = true;
      kill_at_ = StepClock::now() + kKillWait;
      SignalAll(SIGTERM);
    }
  }

  void TellEnds(bool due) {
    if (!due) {
      return;
    }
    tell_at_.reset();
    for (UntoldEnds& ends : untold_) {
      std::sort(ends.ranks.begin(), ends.ranks.end());
      Complain(fmt::format("error: {}: task{} {}: {}", ends.node, ends.ranks.size() > 1 ? "s" : "",
                           FoldedRanks(ends.ranks), ends.how));
    }
    untold_.clear();
  }

  const StepOptions& options_;
  const v1::StartAttempt start_;
  const std::vector<JobNode> job_;
  StepClaims claims_;
  StepLayout layout_;
  int number_ = 0;
  std::vector<NodeOfStep> nodes_;
  bool refused_ = false;
  std::deque<StepChannel> callers_;  // that have not proved anything yet
  io::Descriptor listener_;
  io::Descriptor signals_;
  std::optional<StepClock::time_point> call_end_;  // nodes have not called yet
  std::optional<StepClock::time_point> kill_at_;
  std::optional<StepClock::time_point> tell_at_;
  std::vector<int> signals_before_;  // that have come since then
  std::string output_file_;          // patterns of those that srun writes
  std::string errors_file_;
  io::Descriptor output_;
  io::Descriptor errors_;
  std::optional<int> only_output_;  // of that rank
  std::optional<int> only_errors_;
  std::map<std::pair<int, bool>, std::string> lines_;  // begun, by rank and stream
  std::vector<UntoldEnds> untold_;
  bool reads_input_ = false;
  std::uint64_t given_ = 0;
  std::uint64_t taken_ = 0;
  std::map<int, std::uint64_t> by_node_;
  std::vector<int> succeeded_;  // ranks
  std::vector<int> failed_;
  std::optional<StepClock::time_point> interrupted_;  // for the last time that was told of
  int status_ = 0;
  bool killed_ = false;
};

// Of the attempt in which this process is.
Result<v1::StartAttempt> StartOfAttempt() {
  ASSIGN_OR_RETURN(const AttemptFolder folder,
                   AttemptFolder::At(JobVariable(AttemptFolder::kMarkVariable)));
  ASSIGN_OR_RETURN(v1::StartAttempt start, folder.ReadStart());
  if (start.node_rank() > 0) {
    return Failed(fmt::format(
        "steps start on the first node of a job, where its script runs; this is {}", start.node()));
  }
  return start;
}

}  // namespace

int RunStep(const StepOptions& options) {
  for (const std::string& note : options.notes) {
    Complain(note);
  }
  Result<v1::StartAttempt> start = StartOfAttempt();
  if (!start.ok()) {
    Complain("error: " + start.error().message);
    return 1;
  }
  return RunningStep(options, std::move(start).value()).Run();
}

}  // namespace trainyard::supervisor
