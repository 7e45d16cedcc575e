// SPDX-License-Identifier: Apache-2.0
#include "cli/live/attach/client_attach.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/attach/session_input.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/job_selection.h"
#include "cli/numbers.h"
#include "io/text_check.h"
#include "service/signals.h"

namespace trainyard::cli {
namespace {

Status Write(std::FILE* to, const std::string& bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), to) == bytes.size();
  return written && std::fflush(to) == 0 ? Status() : Failed("stdout: cannot be written");
}

struct AttachOptions : ClusterOptions {
  std::string job;
  int rank = 0;
  std::string node;
  bool terminal = false;
  bool pipes = false;
  bool exports = false;
};

// The environment of this process, but what says where it runs.
void AddEnvironment(v1::AttachRequest& call) {
  constexpr std::array<std::string_view, 6> kNot{
      "SLURM", "TRAINYARD_", "_=", "PWD=", "OLDPWD=", "SHLVL="};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    const bool is_left = std::any_of(kNot.begin(), kNot.end(), [text](std::string_view begin) {
      return text.starts_with(begin);
    });
    // Functions of a shell, and what no message may have, stay here.
    if (equals == std::string_view::npos || equals == 0 || is_left ||
        text.substr(0, equals).find('%') != std::string_view::npos || !io::IsUtf8(text)) {
      continue;
    }
    v1::EnvironmentVariable& variable = *call.add_environment();
    variable.set_name(std::string(text.substr(0, equals)));
    variable.set_value(std::string(text.substr(equals + 1)));
  }
}

v1::AttachRequest OpeningCall(const AttachOptions& options, std::uint64_t job,
                              const std::vector<std::string>& command) {
  v1::AttachRequest call;
  call.set_job(job);
  call.set_rank(options.rank);
  call.set_node(options.node);
  call.set_session(NewSessionName());
  call.set_opens(true);
  call.mutable_command()->Assign(command.begin(), command.end());
  const bool typed = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  call.set_terminal(options.terminal || (!options.pipes && typed));
  if (winsize size{}; call.terminal() && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
    call.set_rows(size.ws_row);
    call.set_columns(size.ws_col);
  }
  if (options.exports) {
    AddEnvironment(call);
  }
  if (const char* const term = std::getenv("TERM"); term != nullptr && call.terminal()) {
    call.set_term(term);
  }
  return call;
}

// Starts the command; the call comes back as the address of its session. Returns the exit code of
// a command that could not be started, whose reason has been printed.
Result<std::optional<int>> Open(rpc::ClusterClient& client, v1::AttachRequest& call) {
  v1::ClientRequest request;
  *request.mutable_attach() = call;
  ASSIGN_OR_RETURN(const v1::ClientReply reply, client.Call(request, kTimeout, kPatience));
  const v1::AttachReply& opened = reply.attach();
  if (opened.gone()) {
    return Failed(fmt::format("job {} has ended; expected a running job", call.job()));
  }
  if (opened.has_exit_code()) {
    Tell(opened.error_output());
    return std::optional<int>(opened.exit_code());
  }
  v1::AttachRequest address;
  address.set_job(call.job());
  address.set_attempt(opened.attempt());
  address.set_rank(opened.rank());
  address.set_session(call.session());
  call = std::move(address);
  return std::optional<int>();
}

Status Attach(const AttachOptions& options, Command& chosen) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  const BlockedSignals signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH});
  ASSIGN_OR_RETURN(const std::vector<std::uint64_t> jobs, JobNumbers(*client, {options.job}));
  v1::AttachRequest call = OpeningCall(options, jobs.front(), chosen.rest);
  const bool terminal = call.terminal();
  ASSIGN_OR_RETURN(const std::optional<int> not_started, Open(*client, call));
  if (not_started) {
    chosen.exit_status = *not_started;
    return {};
  }
  SessionOutput output(*client, call);
  {
    const std::unique_ptr<RawTerminal> raw = terminal ? std::make_unique<RawTerminal>() : nullptr;
    const SessionInput input(
        options, call, signals,
        {.terminal = terminal,
         .on_signal = [](SessionInput& typed, int signal) { typed.Signal(signal); }});
    RETURN_IF_ERROR(output.Copy());
  }
  if (!output.exit_code()) {
    constexpr int kKilled = 137;
    Tell(fmt::format("job {} has ended, or its attempt has, and the command with it", call.job()));
    chosen.exit_status = kKilled;
    return {};
  }
  chosen.exit_status = *output.exit_code();
  return {};
}

struct SignalOptions : ClusterOptions {
  requests::JobSelection selection;
  int signal = SIGTERM;
};

Status SendSignals(const SignalOptions& options) {
  v1::ClientRequest request;
  request.mutable_signal()->set_signal(options.signal);
  ASSIGN_OR_RETURN(*request.mutable_signal()->mutable_selection(),
                   requests::SelectionOf(options.selection));
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  const v1::Changed& changed = reply.signal().changed();
  if (options.json) {
    PrintJsonList(std::vector<v1::JobStatus>(changed.jobs().begin(), changed.jobs().end()));
  }
  for (int i = 0; i < changed.jobs_size() && !options.json; ++i) {
    fmt::print("job {} has got {}\n", JobText(changed.jobs(i)),
               service::SignalText(options.signal));
  }
  return TellLeftOut(changed.left_out());
}

}  // namespace

Status SessionOutput::Take(const v1::AttachReply& reply) {
  if (reply.offset() > target_.offset() && !reply.output().empty()) {
    Tell(fmt::format("{} bytes of the output are gone", reply.offset() - target_.offset()));
  }
  RETURN_IF_ERROR(Write(stdout, reply.output()));
  RETURN_IF_ERROR(Write(stderr, reply.error_output()));
  // The answer for a session that is gone has no offset: what has been shown stays shown.
  target_.set_offset(std::max(target_.offset(), reply.offset() + reply.output().size()));
  target_.set_error_offset(
      std::max(target_.error_offset(), reply.error_offset() + reply.error_output().size()));
  if (reply.has_exit_code()) {
    exit_code_ = reply.exit_code();
  }
  over_ = reply.gone() || exit_code_.has_value();
  return {};
}

Status SessionOutput::Copy() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kGiveUp(60);
  constexpr std::chrono::milliseconds kPause(200);
  constexpr std::chrono::milliseconds kSpacing(25);
  Clock::time_point reached = Clock::now();
  Clock::time_point next = Clock::now();
  target_.set_waits(true);
  while (!over_) {
    std::this_thread::sleep_until(next);  // the controller limits the calls of a user
    next = Clock::now() + kSpacing;
    v1::ClientRequest request;
    *request.mutable_attach() = target_;
    const Result<v1::ClientReply> reply = client_.Call(request, kTimeout, kPatience);
    if (reply.ok()) {
      reached = Clock::now();
      RETURN_IF_ERROR(Take(reply.value().attach()));
      continue;
    }
    if (Clock::now() - reached > kGiveUp) {
      return reply.error();
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

void AddAttach(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* command =
      app.add_subcommand("attach", "a shell, or a command, beside a worker of a running job");
  command->footer(
      "The command follows the options: trainyard attach JOB -- PROGRAM [ARGUMENT...]\n"
      "It runs on the worker's node, as the job's user, with its environment, folder and GPUs, "
      "and\n"
      "ends with the job. The exit status is the command's; 137 if the job has ended first; 127 "
      "if\n"
      "there is no such command, 126 if it may not be run.\n");
  command->add_option("JOB", options->job, "id of the job; ARRAY_INDEX is a task of an array")
      ->required();
  AddClusterOptions(*command, *options);
  CLI::Option* const rank = command->add_option("--rank", options->rank, "worker");
  rank->check(NonNegative())->capture_default_str();
  command->add_option("--node", options->node, "the first worker on this node")->excludes(rank);
  CLI::Option* const terminal =
      command->add_flag("--pty", options->terminal,
                        "with a terminal (default: where standard input and output are one)");
  command->add_flag("--no-pty", options->pipes, "without")->excludes(terminal);
  command->add_flag("--export-all", options->exports,
                    "with the variables of this environment, as a step of srun has them");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return Attach(*options, chosen); }; });
}

void AddSignal(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SignalOptions>();
  CLI::App* command = app.add_subcommand("signal", "send a signal to all workers of running jobs");
  AddJobs(*command, options->selection);
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command
      ->add_option_function<std::string>(
          "-s,--signal",
          [options](const std::string& text) {
            options->signal = service::SignalNamed(text);
            if (options->signal == 0) {
              throw CLI::ValidationError("--signal is '" + text + "'; expected " +
                                         service::kPassedSignals);
            }
          },
          service::kPassedSignals)
      ->type_name("NAME")
      ->required();
  command->callback(
      [options, &chosen] { chosen.run = [options] { return SendSignals(*options); }; });
}

}  // namespace trainyard::cli
