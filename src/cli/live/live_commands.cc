// SPDX-License-Identifier: Apache-2.0
// trainyard controller, agent, up, and the hidden command supervise.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/config/reread.h"
#include "cli/live/controller_switches.h"
#include "cli/numbers.h"
#include "cli/run_options.h"
#include "cli/running.h"
#include "daemon/agent_process.h"
#include "daemon/controller_process.h"
#include "daemon/devices.h"
#include "daemon/reloads.h"
#include "rpc/address.h"
#include "scenario/preset.h"
#include "store/folder.h"
#include "supervisor/launch/launcher_calls.h"
#include "supervisor/supervisor.h"
#include "trace/clusters/cluster_file.h"

namespace trainyard::cli {
namespace {

// Closes mailboxes when the user wants the program to end; from the second time on, sets `hurry`.
// `on_hang_up`: what SIGHUP does.
// The signals are not blocked, since whatever the program starts would inherit that.
class StopSignals {
 public:
  StopSignals(std::vector<daemon::Mailbox*> mailboxes, std::atomic<bool>* hurry,
              std::function<void()> on_hang_up) {
    if (pipe2(pipe_.data(), O_CLOEXEC) != 0) {
      std::abort();
    }
    write_end = pipe_[1];
    for (const int signal : {SIGINT, SIGTERM}) {
      std::signal(signal, [](int /*number*/) { Write(kSignal); });
    }
    std::signal(SIGHUP, [](int /*number*/) { Write(kHangUp); });
    thread_ = std::thread(
        [this, mailboxes = std::move(mailboxes), hurry, on_hang_up = std::move(on_hang_up)] {
          bool first = true;
          for (char told = Read(); told != kEnd; told = Read()) {
            if (told == kHangUp) {
              on_hang_up();
              continue;
            }
            if (!first && hurry != nullptr) {
              *hurry = true;
            }
            for (daemon::Mailbox* mailbox : mailboxes) {
              mailbox->Close();
            }
            first = false;
          }
        });
  }
  ~StopSignals() {
    Write(kEnd);
    thread_.join();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      std::signal(signal, SIG_DFL);
    }
    close(pipe_[0]);
    close(pipe_[1]);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  static constexpr char kEnd = 0;
  static constexpr char kSignal = 1;
  static constexpr char kHangUp = 2;
  static void Write(char byte) { [[maybe_unused]] const auto written = write(write_end, &byte, 1); }
  [[nodiscard]] char Read() const {
    char byte = kEnd;
    while (read(pipe_[0], &byte, 1) < 0) {
    }
    return byte;
  }

  // A signal's function knows nothing else.
  static inline int write_end = -1;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
  std::array<int, 2> pipe_{};
  std::thread thread_;
};

// Lines appear at once though stdout may be a file.
void Say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// A line of a controller's log, in which users' texts may stand.
void SayAsController(const std::string& line) {
  Say(base::UtcNow() + " trainyard controller: " + base::Printable(line));
}

std::string DefaultState() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') {
    return std::string(state) + "/trainyard";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/state/trainyard";
}

// Checked as they are read, so that a mistake in a file is told with its line. `check`: what is
// wrong with the address, as a Status or Result.
template <typename Checked>
CLI::Validator Address(Checked (*check)(std::string_view option, std::string_view text)) {
  return {[check](const std::string& text) {
            const Checked checked = check("it", text);
            return checked.ok() ? std::string() : checked.error().message;
          },
          ""};
}

constexpr double kSecondsPerMinute = 60;

// A time that is given in `unit` seconds, or with its own unit.
CLI::Option* AddTime(CLI::App& command, const std::string& name, Duration& time,
                     const std::string& help, double unit = 1) {
  return command
      .add_option_function<double>(
          name, [&time, unit](double given) { time = FromSeconds(given * unit); }, help)
      ->transform(Span(unit))
      ->default_str(fmt::format("{:g}", Seconds(time) / unit));
}

void AddPolicyOptions(CLI::App& command, daemon::ControllerOptions& options) {
  command.add_option("--policy", options.names.policy, "NAME[:key=value,...]; default: backfill")
      ->check(NotEmpty());
  AddComponentOptions(command, options.names);
  command
      .add_option("--preset", options.names.preset,
                  "NAME[:key=value,...], or FILE.toml[:key=value,...]")
      ->check(NotEmpty());
  command.add_option("--profiles", options.profiles,
                     "throughput profiles: a folder of MODEL.csv or one file; sensitivity "
                     "profiles; a model catalogue");
  command.add_option("--measured", options.measured,
                     "what a cluster has measured, to begin with: a folder that `profiles export` "
                     "wrote; read at the first start on a --state");
  AddTime(
      command, "--measure-window", options.live.measuring.first_window,
      "seconds over which the iterations of a running job are counted first, twice as long each "
      "time; 0: jobs are not measured")
      ->check(CLI::Range(0.0, 3600.0));
  command
      .add_option("--time-scale", options.live.time_scale,
                  "scheduler's seconds per real second, to play a trace faster")
      ->check(Positive())
      ->capture_default_str();
  command
      .add_option(
          "--open-nodes", options.live.open_nodes,
          "agents of machines that the cluster file does not name may join until there are so "
          "many nodes; 0: none may")
      ->transform(WholeNumber())
      ->capture_default_str();
  AddTime(command, "--heartbeat", options.live.heartbeat,
          "seconds between signs of life of an agent")
      ->check(CLI::Range(0.05, 3600.0));
  AddTime(command, "--lease", options.live.lease,
          "seconds without contact after which a node stops its jobs")
      ->check(CLI::Range(0.5, 1e6));
  AddTime(command, "--grace", options.live.grace,
          "longest time in seconds that a job has to save itself and leave")
      ->check(CLI::Range(0.1, 1e5));
  command
      .add_option("--snapshot-entries", options.snapshots.entries,
                  "entries of the journal after which the state is written down, so that a restart "
                  "is quick; 0: never")
      ->transform(WholeNumber())
      ->capture_default_str();
  AddTime(command, "--snapshot-minutes", options.snapshots.interval,
          "minutes after which it is, if anything has happened", kSecondsPerMinute)
      ->check(CLI::Range(0.01, 1e6));
  command
      .add_option_function<std::string>(
          "--journal",
          [&options](const std::string& what) { options.snapshots.compact = what == "compact"; },
          "keep: all that has ever happened; compact: what the last two snapshots need")
      ->check(CLI::IsMember({"keep", "compact"}))
      ->default_str("keep");
}

// Whom a controller serves, and who may do what.
void AddAccessOptions(CLI::App& command, daemon::ControllerOptions& options) {
  command
      .add_option_function<std::string>(
          "--users", [&options](const std::string& whom) { options.all_users = whom == "all"; },
          "own: serves only the user who runs it, and root; all: every user of this machine")
      ->check(CLI::IsMember({"own", "all"}))
      ->default_str("own");
  command.add_option("--operators", options.operators,
                     "users who may cancel and resize all jobs, and drain nodes");
  command.add_option("--admins", options.admins,
                     "users who may do everything, as root and the controller's own user may");
  command
      .add_option_function<std::string>(
          "--see-jobs",
          [&options](const std::string& whose) { options.live.shows_all_jobs = whose == "all"; },
          "own: users see their own jobs; all: those of others, too, but not their logs")
      ->check(CLI::IsMember({"own", "all"}))
      ->default_str("own");
  command.add_option("--socket", options.socket,
                     "the local socket at which users of this machine get their tokens: a path, or "
                     "@NAME (default: one that belongs to the port)");
  command
      .add_option("--user-calls", options.user_calls,
                  "calls per second of each user who is neither operator nor admin, ten times as "
                  "many after a pause; who makes more waits; 0: any number")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_flag("--tls", options.tls,
                   "by TLS on loopback, too; other addresses are never without");
  command
      .add_option_function<std::string>(
          "--munge", [&options](const std::string& socket) { options.munge = socket; },
          "takes credentials of munge; the socket of munged, if it is not the usual one")
      ->expected(0, 1)
      ->default_str("");
  command
      .add_option_function<double>(
          "--certificate-life",
          [&options](double hours) { options.certificate_life = FromSeconds(hours * 3600); },
          "hours that certificates last; they are made anew in time")
      ->check(CLI::Range(0.001, 1e5))
      ->default_str("720");
}

// Where notices go is for the operator to say: what is run has the controller's rights.
void AddNotifyOptions(CLI::App& command, daemon::ControllerOptions& options) {
  command
      .add_option("--notify-program", options.notify_program,
                  "program that is run for each notice that jobs ask for by --notify, with JSON on "
                  "its standard input")
      ->type_name("PATH");
  command
      .add_option("--notify-url", options.notify_url,
                  "http:// or https:// address to which each notice is sent, as a POST of JSON")
      ->type_name("URL");
}

Status Apply(const std::vector<std::string>& plugins, daemon::ControllerOptions& options) {
  options.log = SayAsController;
  if (options.names.policy.empty() && options.names.preset.empty()) {
    ASSIGN_OR_RETURN(const scenario::ResolvedPreset usual, scenario::ResolvePreset({}));
    options.names.policy = usual.policy.name;
  }
  ASSIGN_OR_RETURN(std::string program, ProgramName(plugins));
  options.snapshots.program = std::move(program);
  return {};
}

// What --check-config says, with the state folder as it is.
Status SayWhetherGood(const Status& checked, const std::string& state) {
  RETURN_IF_ERROR(checked);
  ASSIGN_OR_RETURN(const std::string to_be_made, store::CheckFolderToBe("--state", state));
  if (!to_be_made.empty()) {
    Say(to_be_made);
  }
  Say("the configuration is good");
  return {};
}

std::string HostOf(const std::string& listen) { return listen.substr(0, listen.rfind(':')); }

// ------------------------------------------------------------------------------------- controller

// When another value of an option is taken; of those that are not named, at a restart.
constexpr const char* kWhileItRuns =
    "Changed while it runs, by 'trainyard config' and 'trainyard node', or by the file and SIGHUP";
constexpr const char* kAtHangUp = "Changed while it runs, by the file and SIGHUP";
constexpr const char* kAtRestart = "Changed at a restart";
constexpr const char* kNever = "As at the first start on a --state";
struct OptionTime {
  const char* option;
  const char* taken;
};
constexpr std::array kOptionTimes{
    OptionTime{"--policy", kWhileItRuns},    OptionTime{"--placement", kWhileItRuns},
    OptionTime{"--admission", kWhileItRuns}, OptionTime{"--grouping", kWhileItRuns},
    OptionTime{"--tuning", kWhileItRuns},    OptionTime{"--preset", kWhileItRuns},
    OptionTime{"--cluster", kWhileItRuns},   OptionTime{"--users", kAtHangUp},
    OptionTime{"--operators", kAtHangUp},    OptionTime{"--admins", kAtHangUp},
    OptionTime{"--user-calls", kAtHangUp},   OptionTime{"--time-scale", kNever},
    OptionTime{"--profiles", kWhileItRuns},  OptionTime{"--measured", kNever},
};

std::set<std::string> TakenWhileItRuns() {
  std::set<std::string> options;
  for (const OptionTime& one : kOptionTimes) {
    if (one.taken == kWhileItRuns || one.taken == kAtHangUp) {
      options.insert(one.option);
    }
  }
  return options;
}

// For the help, which lists options by the time at which they are taken.
void GroupByTime(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    const auto* const at =
        std::find_if(kOptionTimes.begin(), kOptionTimes.end(),
                     [&name](const OptionTime& one) { return name == one.option; });
    const bool acts = name == "--help" || name == "--check-config" || name == "--rehearse";
    if (!acts) {
      option->group(at == kOptionTimes.end() ? kAtRestart : at->taken);
    }
  }
}

struct ControllerCommand {
  daemon::ControllerOptions options{.state = DefaultState() + "/controller"};
  bool check = false;
  bool rehearse = false;
};

// Each agent has a connection, and each command: as many as the system lets this process have.
void RaiseOpenFiles() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

Status RunControllerCommand(ControllerCommand command, const Command& chosen) {
  RETURN_IF_ERROR(Apply(chosen.plugins, command.options));
  if (command.check) {
    return SayWhetherGood(daemon::CheckController(command.options), command.options.state);
  }
  if (command.rehearse) {
    command.options.log = [](const std::string& line) { Say(line); };
    return daemon::RehearseController(command.options);
  }
  RaiseOpenFiles();
  daemon::Mailbox mailbox;
  daemon::Reloads reloads;
  command.options.reloads = &reloads;
  Reread reread(chosen, TakenWhileItRuns(), [&](const Command& now) -> Status {
    daemon::ControllerOptions options = *now.controller;
    RETURN_IF_ERROR(Apply(chosen.plugins, options));
    options.log = command.options.log;
    return reloads.Give(std::move(options));
  });
  const StopSignals signals({&mailbox}, nullptr, [&reread] { SayAsController(reread.Read()); });
  return daemon::RunController(command.options, mailbox, [&command](const daemon::Ready& ready) {
    SayAsController(fmt::format("listening on {}:{}, policy {}, state in {}",
                                HostOf(command.options.listen), ready.port, ready.policy,
                                command.options.state));
  });
}

// ------------------------------------------------------------------------------------------ agent

// Of each agent.
struct DataOptions {
  std::uint64_t cache = 0;
  std::uint64_t rate = 0;
};

void AddDataOptions(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data-cache", options.cache,
                  "room on a node's disk for copies of jobs' data sets, such as 200GB; 0: none "
                  "(default)")
      ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--data-rate", options.rate,
                  "bytes per second at most of each fetch of a data set, such as 100MB; 0: any "
                  "(default)")
      ->transform(CLI::AsSizeValue(false));
}

struct AgentCommand {
  daemon::AgentOptions options{.state = DefaultState() + "/agent"};
  std::string gpus = "auto";
  std::string interface;
  bool check = false;
  DataOptions data;
};

Status RunAgentCommand(const AgentCommand& command, const Command& chosen) {
  daemon::AgentOptions options = command.options;
  options.program = ThisProgram();
  ASSIGN_OR_RETURN(const daemon::Devices devices, daemon::ParseDevices(command.gpus));
  options.gpus = devices.gpus;
  options.data_cache = command.data.cache;
  options.data_rate = command.data.rate;
  options.gpu_type = devices.type;
  if (command.gpus == "auto") {
    options.gpu_fault = [health = std::make_shared<daemon::GpuHealth>()](int gpu) {
      return health->FaultOf(gpu);
    };
  }
  if (!command.interface.empty()) {
    ASSIGN_OR_RETURN(const std::string address, daemon::AddressOf(command.interface));
    options.address = address;
  }
  if (command.check) {
    return SayWhetherGood(daemon::CheckAgent(options), options.state);
  }
  daemon::Mailbox mailbox;
  Reread reread(chosen, {}, {});
  const StopSignals signals({&mailbox}, nullptr, [&reread] { daemon::SayAsAgent(reread.Read()); });
  return daemon::RunAgent(options, mailbox);
}

// --------------------------------------------------------------------------------------------- up

struct UpCommand {
  daemon::ControllerOptions options{.state = DefaultState() + "/up"};
  int nodes = 2;
  int gpus = 8;
  DataOptions data;
};

Status RunUp(UpCommand command, const std::vector<std::string>& plugins) {
  RETURN_IF_ERROR(Apply(plugins, command.options));
  command.options.logs_changes = false;  // its user makes them, often in the same terminal
  const std::string folder = command.options.state;
  if (command.options.cluster.empty()) {
    command.options.cluster = fmt::format("{}x{}", command.nodes, command.gpus);
  }
  command.options.state = folder + "/controller";
  ASSIGN_OR_RETURN(const Cluster cluster, trace::ReadCluster(command.options.cluster));
  daemon::Mailbox controller;
  std::vector<std::unique_ptr<daemon::Mailbox>> mailboxes;
  std::vector<daemon::Mailbox*> all = {&controller};
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    mailboxes.push_back(std::make_unique<daemon::Mailbox>());
    all.push_back(mailboxes.back().get());
  }
  std::atomic<bool> hurry = false;
  std::vector<std::thread> agents;
  const auto end_agents = [&] {
    for (const std::unique_ptr<daemon::Mailbox>& mailbox : mailboxes) {
      mailbox->Close();
    }
    for (std::thread& agent : agents) {
      agent.join();
    }
  };
  Status status;
  {
    const StopSignals signals(all, &hurry, [] {
      Say("trainyard: SIGHUP changes nothing here: 'up' reads its options when it starts; SIGTERM "
          "or Ctrl-C ends the cluster, and the same command goes on with its jobs");
    });
    status = daemon::RunController(command.options, controller, [&](const daemon::Ready& ready) {
      const int port = ready.port;
      for (std::size_t i = 0; i < mailboxes.size(); ++i) {
        const NodeSpec& spec = cluster.nodes[i];
        agents.emplace_back([&command, &mailboxes, &folder, &hurry, &spec, i, port] {
          const Status ended = daemon::RunAgent(
              {.controller = fmt::format("{}:{}", HostOf(command.options.listen), port),
               .node = spec.name,
               .gpus = spec.gpus,
               .gpu_type = spec.gpu_type,
               .state = fmt::format("{}/nodes/{}", folder, spec.name),
               .checkpoints = folder + "/checkpoints",
               .program = ThisProgram(),
               .data_cache = command.data.cache,
               .data_rate = command.data.rate,
               .grace_at_end = command.options.live.grace,
               .hurry = &hurry,
               .tell = [](const std::string& line) { Say("trainyard: " + line); }},
              *mailboxes[i]);
          if (!ended.ok()) {
            fmt::print(stderr, "{}\n", ended.error().message);
          }
        });
      }
      Say(fmt::format("trainyard: {} nodes with {} GPUs in all, policy {}, at {}:{}; state in {}",
                      ready.nodes, ready.gpus, ready.policy, HostOf(command.options.listen), port,
                      folder));
      Say("submit with `trainyard submit --gpus 2 -- COMMAND`; Ctrl-C ends the cluster, and the "
          "same command goes on with its jobs");
    });
    end_agents();
  }
  return status;
}

void AddController(CLI::App& app, Command& chosen) {
  auto controller = std::make_shared<ControllerCommand>();
  CLI::App* command = app.add_subcommand("controller", "decide for a cluster of agents");
  command->add_option("--cluster", controller->options.cluster,
                      "the nodes that may join: cluster file, or NODESxGPUS such as 16x8 or "
                      "8x8:A100,16x8:V100; required");
  command->add_option("--state", controller->options.state, "folder for what must not be lost")
      ->capture_default_str();
  command
      ->add_option("--listen", controller->options.listen,
                   "ADDRESS:PORT; other addresses than loopback are served by TLS only")
      ->check(Address(rpc::CheckListenAddress))
      ->capture_default_str();
  AddAccessOptions(*command, controller->options);
  AddNotifyOptions(*command, controller->options);
  AddPolicyOptions(*command, controller->options);
  command->add_flag("--check-config", controller->check, "only say whether the options are good");
  command->add_flag(
      "--rehearse", controller->rehearse,
      "only go through a copy of --state with this program and these options: whether "
      "it decides the same, and what the start would change");
  AddSwitches(*command, chosen);
  GroupByTime(*command);
  command->callback([controller, command, &chosen] {
    if (!command->get_subcommands().empty()) {
      return;  // it is about one that runs
    }
    if (controller->options.cluster.empty()) {
      throw CLI::RequiredError("--cluster");
    }
    chosen.given = GivenOptions(*command);
    chosen.controller =
        std::shared_ptr<const daemon::ControllerOptions>(controller, &controller->options);
    chosen.run = [controller, &chosen] { return RunControllerCommand(*controller, chosen); };
  });
}

void AddAgent(CLI::App& app, Command& chosen) {
  auto agent = std::make_shared<AgentCommand>();
  CLI::App* command = app.add_subcommand("agent", "run a controller's jobs on this machine");
  command->add_option("--controller", agent->options.controller, "HOST[:PORT]")
      ->check(Address(rpc::ControllerAddress))
      ->capture_default_str();
  command->add_option("--node", agent->options.node,
                      "name in the cluster file (default: the host's)");
  command->add_option("--address", agent->options.address,
                      "where other nodes reach this one (default: 127.0.0.1)");
  command->add_option("--interface", agent->interface, "the network interface with that address")
      ->excludes("--address");
  command
      ->add_option("--gpus", agent->gpus,
                   "N[:TYPE] declares devices; auto asks the NVIDIA driver for them")
      ->capture_default_str();
  command->add_option("--state", agent->options.state, "folder for attempts, logs and checkpoints")
      ->capture_default_str();
  command->add_option("--checkpoints", agent->options.checkpoints,
                      "folder that all nodes share, for what jobs save (default: within --state)");
  command
      ->add_option("--log-limit", agent->options.log_limit,
                   "room on the disk for the logs of one job, such as 500MB; the oldest go first; "
                   "0: any (default: 1GB)")
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--launcher", agent->options.launcher,
                      "trainyard-launcher, which starts each job as its own user (default: jobs "
                      "run as this one, and only this one's are taken)");
  command->add_option("--join-token-file", agent->options.join_token_file,
                      "the file with a token of 'trainyard node token', for the first start");
  AddDataOptions(*command, agent->data);
  command->add_flag("--check-config", agent->check, "only say whether the options are good");
  command->callback([agent, command, &chosen] {
    chosen.given = GivenOptions(*command);
    chosen.run = [agent, &chosen] { return RunAgentCommand(*agent, chosen); };
  });
}

void AddUp(CLI::App& app, Command& chosen) {
  auto up = std::make_shared<UpCommand>();
  CLI::App* command =
      app.add_subcommand("up", "a whole cluster on this machine: controller and agents");
  CLI::Option* nodes = command->add_option("--nodes", up->nodes, "how many");
  nodes->check(CLI::Range(1, 64))->capture_default_str();
  CLI::Option* gpus = command->add_option("--gpus", up->gpus, "pretended GPUs of each node");
  gpus->check(CLI::Range(1, kMaxGpusPerNode))->capture_default_str();
  command
      ->add_option("--cluster", up->options.cluster,
                   "cluster file in place of both: nodes with other GPUs, CPUs and memory")
      ->excludes(nodes)
      ->excludes(gpus);
  command->add_option("--state", up->options.state, "folder in which the cluster lives on")
      ->capture_default_str();
  command->add_option("--listen", up->options.listen, "ADDRESS:PORT")
      ->check(Address(rpc::CheckListenAddress))
      ->capture_default_str();
  AddDataOptions(*command, up->data);
  AddNotifyOptions(*command, up->options);
  AddPolicyOptions(*command, up->options);
  command->callback(
      [up, &chosen] { chosen.run = [up, &chosen] { return RunUp(*up, chosen.plugins); }; });
}

void AddSupervise(CLI::App& app, Command& chosen) {
  struct Options {
    std::string folder;
    std::string launch;
    std::string key;
    std::optional<int> log;
    bool clear = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("supervise", "stand by one attempt of a job")->group("");
  command->add_option("FOLDER", options->folder)->required();
  command->add_option("--launch", options->launch, "digest of what alone may run");
  command->add_option("--key", options->key, "of the controller without whose word none attaches");
  command->add_option("--log", options->log, "hand out the open log of this rank, by stdin");
  command->add_flag("--clear", options->clear, "remove what the attempt has left");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> Status {
      int status = 0;
      if (options->log.has_value()) {
        status = supervisor::HandOutLog(*options->log);
      } else if (options->clear) {
        status = supervisor::ClearFolder(options->folder);
      } else {
        status = supervisor::RunSupervisor(options->folder, options->launch, options->key);
      }
      return status == 0 ? Status() : Status(Failed("the supervisor has failed"));
    };
  });
}

}  // namespace

void AddLive(CLI::App& app, Command& chosen) {
  AddController(app, chosen);
  AddAgent(app, chosen);
  AddUp(app, chosen);
  AddSupervise(app, chosen);
}

}  // namespace trainyard::cli
