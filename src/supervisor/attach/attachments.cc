// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attach/attachments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/try.h"
#include "identity/keys.h"
#include "launcher/credential.h"
#include "service/call_error.h"
#include "supervisor/attach/attach_digest.h"
#include "supervisor/launch/containers.h"
#include "supervisor/launch/launch_command.h"
#include "supervisor/process_table.h"
#include "supervisor/steps/slurm_tools.h"

namespace trainyard::supervisor {
namespace {

constexpr std::size_t kMostCommands = 32;
constexpr std::chrono::seconds kLastWords(5);  // from the hang-up to the kill

bool IsSessionName(const std::string& name) {
  constexpr std::size_t kDigits = 32;
  return name.size() == kDigits && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Variables that say where the worker is and what it has there: they are not the caller's.
bool IsOfWorker(const std::string& name) {
  return name.starts_with("TRAINYARD_") || name.starts_with("SLURM") ||
         name == "CUDA_VISIBLE_DEVICES" || name == "ROCR_VISIBLE_DEVICES" ||
         name == "GPU_DEVICE_ORDINAL" || name == "BASH_ENV";
}

std::string ValueOf(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(name + "=")) {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

// Those of the caller, where it gives any, take the place of the worker's, but its tools of Slurm
// are found first.
void AddVariables(const v1::AttachRequest& request, std::vector<std::string>& environment) {
  if (request.environment().empty()) {
    return;
  }
  const std::string tools = ValueOf(environment, kStepFolderVariable);
  std::erase_if(environment, [](const std::string& variable) {
    return !IsOfWorker(variable.substr(0, variable.find('=')));
  });
  for (const v1::EnvironmentVariable& variable : request.environment()) {
    if (!IsOfWorker(variable.name())) {
      const bool is_path = variable.name() == "PATH" && !tools.empty();
      environment.push_back(variable.name() + "=" + (is_path ? tools + ":" : "") +
                            variable.value());
    }
  }
}

// The controller has signed this very command for this very attempt, not long ago.
Status CheckWord(const std::string& key, const v1::AttachOrder& order) {
  ASSIGN_OR_RETURN(const std::string pem, AttemptFolder::ReadPlain(key));
  ASSIGN_OR_RETURN(const std::string public_key, identity::PublicKeyOf(pem, key));
  ASSIGN_OR_RETURN(const launcher::SignedCredential read,
                   launcher::ReadCredential(order.credential()));
  const launcher::Credential& credential = read.credential;
  if (!identity::Verify(public_key, read.text, read.signature)) {
    return Failed("the signature is not that of this cluster's controller");
  }
  if (credential.job != order.id().job() || credential.attempt != order.id().attempt() ||
      credential.launch != AttachDigest(order.request())) {
    return Failed("the controller has signed something else");
  }
  return credential.expires > time(nullptr) ? Status() : Failed("the credential has expired");
}

}  // namespace

Attachments::Attachments(const v1::StartAttempt& start, const AttemptFolder& folder,
                         Options options)
    : start_(start), folder_(folder), options_(std::move(options)) {}

std::optional<SessionStreams> Attachments::StreamsOfWorker() const {
  const bool first = start_.node_rank() == 0;
  switch (start_.launch().input()) {
    case v1::LaunchSpec::PIPE:
      return first ? SessionStreams::InputOnly() : std::nullopt;
    case v1::LaunchSpec::TERMINAL:
      return first ? SessionStreams::Terminal() : std::nullopt;
    default:
      return std::nullopt;
  }
}

void Attachments::SetWorker(SessionStreams streams, pid_t pid) {
  io::Descriptor log;
  if (streams.terminal) {
    log = io::Descriptor(open(folder_.PathOfLog(start_.first_rank()).c_str(),
                              O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
  }
  worker_.emplace(std::move(streams), pid, std::move(log), Clock::now());
}

// ------------------------------------------------------------------------------------------- calls

void Attachments::Refuse(const v1::AttachOrder& order, ErrorCode code, const std::string& why) {
  v1::AttachAnswer& answer = answers_.emplace_back();
  answer.set_call(order.call());
  answer.set_epoch(order.epoch());
  *answer.mutable_error() = service::MessageOf({code, why});
}

// With the exit code of a shell: 127, no such program; 126, it may not be run. What the node lacks
// (processes, descriptors, the folder) is an error of the call.
void Attachments::RefuseToStart(const v1::AttachOrder& order, const StartFailure& failure) {
  if (failure.cause != v1::AttemptReport::NO_PROGRAM) {
    return Refuse(order, ErrorCode::kFailedPrecondition, failure.message);
  }
  v1::AttachAnswer& answer = answers_.emplace_back();
  answer.set_call(order.call());
  answer.set_epoch(order.epoch());
  v1::AttachReply& reply = *answer.mutable_reply();
  reply.set_attempt(order.id().attempt());
  reply.set_rank(order.request().rank());
  reply.set_exit_code(failure.exit_code);
  reply.set_error_output(failure.message);
}

void Attachments::Take(const v1::AttachOrder& order, Clock::time_point now) {
  const v1::AttachRequest& request = order.request();
  if (request.session().empty()) {
    if (worker_) {
      return worker_->Take(order, now);
    }
    return Refuse(order, ErrorCode::kFailedPrecondition,
                  fmt::format("job {} takes no input; expected one that was started by 'trainyard "
                              "run'",
                              start_.id().job()));
  }
  if (request.opens() && !commands_.contains(request.session())) {
    Open(order, now);
  }
  if (const auto found = commands_.find(request.session()); found != commands_.end()) {
    return found->second.session.Take(order, now);
  }
  if (!request.opens()) {
    v1::AttachAnswer& answer = answers_.emplace_back();
    answer.set_call(order.call());
    answer.set_epoch(order.epoch());
    answer.mutable_reply()->set_gone(true);
  }
}

Status Attachments::CheckOpen(const v1::AttachOrder& order) const {
  const std::string& name = order.request().session();
  if (!IsSessionName(name)) {
    return Failed("the session has no proper name; expected 32 hex digits");
  }
  if (std::find(over_.begin(), over_.end(), name) != over_.end()) {
    return Failed("the session has ended; expected another name");
  }
  return options_.key.empty() ? Status() : CheckWord(options_.key, order);
}

int Attachments::LocalRankOf(const v1::AttachRequest& request) const {
  return std::max(0, request.rank() - start_.first_rank());
}

WorkerCommand Attachments::CommandOf(const v1::AttachRequest& request,
                                     const SessionStreams& streams) const {
  const int local_rank = LocalRankOf(request);
  WorkerCommand made{.command = {request.command().begin(), request.command().end()},
                     .environment = options_.environment(local_rank),
                     .working_directory = start_.launch().working_directory(),
                     .log = folder_.PathOf("supervisor.log"),
                     .mask = options_.mask};
  AddVariables(request, made.environment);
  if (made.command.empty()) {
    const std::string shell = ValueOf(made.environment, "SHELL");
    made.command = {shell.empty() ? "/bin/sh" : shell};
  }
  if (start_.launch().has_container()) {
    made.command = ExecCommand(start_, local_rank, folder_, request);
  }
  if (request.terminal()) {
    made.environment.push_back("TERM=" + (request.term().empty() ? "xterm" : request.term()));
  }
  made.streams = {
      .input = streams.their_input.get(),
      .output = streams.terminal ? streams.their_input.get() : streams.their_output.get(),
      .errors = streams.terminal ? streams.their_input.get() : streams.their_errors.get(),
      .own_session = true,
      .terminal = streams.terminal};
  return made;
}

void Attachments::Open(const v1::AttachOrder& order, Clock::time_point now) {
  const v1::AttachRequest& request = order.request();
  if (const Status status = CheckOpen(order); !status.ok()) {
    return Refuse(order, ErrorCode::kPermissionDenied,
                  fmt::format("job {}: {}", start_.id().job(), status.error().message));
  }
  if (commands_.size() >= kMostCommands) {
    return Refuse(order, ErrorCode::kResourceExhausted,
                  fmt::format("job {} has {} attached commands on this node already",
                              start_.id().job(), commands_.size()));
  }
  const int local_rank = LocalRankOf(request);
  if (start_.launch().has_container() &&
      access(folder_.PathOf(ContainerPidFile(local_rank).c_str()).c_str(), F_OK) != 0) {
    return Refuse(order, ErrorCode::kFailedPrecondition,
                  fmt::format("the container of worker {} of job {} has not started yet; "
                              "'trainyard logs {}' has what podman says",
                              request.rank(), start_.id().job(), start_.id().job()));
  }
  std::optional<SessionStreams> streams =
      request.terminal() ? SessionStreams::Terminal(request.rows(), request.columns())
                         : SessionStreams::Pipes();
  if (!streams) {
    return Refuse(order, ErrorCode::kResourceExhausted,
                  "the node has no terminals or descriptors left");
  }
  const std::variant<pid_t, StartFailure> started = StartWorker(CommandOf(request, *streams));
  if (const auto* failure = std::get_if<StartFailure>(&started); failure != nullptr) {
    return RefuseToStart(order, *failure);
  }
  Session session(*std::move(streams), std::get<pid_t>(started), io::Descriptor(), now);
  if (start_.launch().has_container()) {
    session.SetMark(SessionMark(request.session()));
  }
  commands_.emplace(request.session(),
                    Command{.session = std::move(session), .local_rank = local_rank});
}

// --------------------------------------------------------------------------------------- processes

bool Attachments::NoteEnd(pid_t child, int exit_code, Clock::time_point now) {
  if (worker_ && worker_->pid() == child) {
    worker_->End(exit_code, now);
    return false;
  }
  for (auto& [name, command] : commands_) {
    if (command.session.pid() == child && !command.session.ended()) {
      command.session.End(exit_code, now);
      CleanUpContainers();
      return true;
    }
  }
  return false;
}

bool Attachments::Runs(int local_rank) const {
  return std::any_of(commands_.begin(), commands_.end(), [local_rank](const auto& entry) {
    return entry.second.local_rank == local_rank && !entry.second.session.ended();
  });
}

void Attachments::NoteOrphansEnd(pid_t child) {
  if (commands_.empty()) {
    return;
  }
  const std::optional<int> closed = ContainerWatchedBy(child, start_, folder_);
  if (!closed) {
    return;
  }
  for (const auto& [name, command] : commands_) {
    if (command.local_rank == *closed && !command.session.ended()) {
      command.session.Signal(SIGKILL);
    }
  }
  closed_.push_back(*closed);
  CleanUpContainers();
}

void Attachments::CleanUpContainers() {
  std::erase_if(closed_, [this](int local_rank) {
    if (Runs(local_rank)) {
      return false;
    }
    CleanUpContainer(local_rank, start_, folder_, options_.environment(local_rank));
    return true;
  });
}

bool Attachments::Has(pid_t session) const {
  return std::any_of(commands_.begin(), commands_.end(), [session](const auto& entry) {
    return entry.second.session.pid() == session;
  });
}

// Of commands whose client is gone.
void Attachments::HangUp(Clock::time_point now) {
  for (auto& [name, command] : commands_) {
    if (command.session.ended() || !command.session.IsForsaken(now)) {
      continue;
    }
    if (!command.kill_at) {
      command.kill_at = now + kLastWords;
      command.session.Signal(SIGHUP);
      command.session.Signal(SIGCONT);
    } else if (now >= *command.kill_at) {
      command.kill_at = now + kLastWords;
      command.session.Signal(SIGKILL);
      for (const Process& process : AllProcesses()) {
        if (process.session == command.session.pid()) {
          SendSignal(process, SIGKILL);
        }
      }
    }
  }
  std::erase_if(commands_, [&](const auto& entry) {
    const bool over = entry.second.session.ended() && entry.second.session.IsForsaken(now);
    if (over) {
      over_.push_back(entry.first);
    }
    return over;
  });
}

Session::Answers Attachments::Serve(Clock::time_point now) {
  HangUp(now);
  Session::Answers answers = std::exchange(answers_, {});
  const auto add = [&answers](Session::Answers more) {
    std::move(more.begin(), more.end(), std::back_inserter(answers));
  };
  if (worker_) {
    add(worker_->Serve(now));
  }
  for (auto& [name, command] : commands_) {
    add(command.session.Serve(now));
  }
  return answers;
}

Session::Answers Attachments::Close(Clock::time_point now) {
  Session::Answers answers = Serve(now);
  const auto add = [&answers](Session::Answers more) {
    std::move(more.begin(), more.end(), std::back_inserter(answers));
  };
  if (worker_) {
    add(worker_->Close());
  }
  for (auto& [name, command] : commands_) {
    add(command.session.Close());
  }
  return answers;
}

void Attachments::AddAwaited(std::vector<pollfd>& polls) const {
  if (worker_) {
    worker_->AddAwaited(polls);
  }
  for (const auto& [name, command] : commands_) {
    command.session.AddAwaited(polls);
  }
}

std::optional<Attachments::Clock::time_point> Attachments::NextDue() const {
  std::optional<Clock::time_point> due;
  const auto add = [&due](std::optional<Clock::time_point> at) {
    due = at ? std::min(due.value_or(*at), *at) : due;
  };
  if (!answers_.empty()) {
    return Clock::now();
  }
  if (worker_) {
    add(worker_->NextDue());
  }
  for (const auto& [name, command] : commands_) {
    add(command.session.NextDue());
    add(command.kill_at ? command.kill_at : std::optional(command.session.forsaken_at()));
  }
  return due;
}

}  // namespace trainyard::supervisor
