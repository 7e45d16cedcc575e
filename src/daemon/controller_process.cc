// SPDX-License-Identifier: Apache-2.0
#include "daemon/controller_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "daemon/audit_file.h"
#include "daemon/clock.h"
#include "daemon/configurations.h"
#include "daemon/credentials.h"
#include "daemon/notices/outbox.h"
#include "daemon/periodic.h"
#include "daemon/reloads.h"
#include "daemon/restored_numbers.h"
#include "daemon/transport.h"
#include "identity/authority.h"
#include "identity/door.h"
#include "io/file.h"
#include "io/temporary_folder.h"
#include "live/controller.h"
#include "live/jobs/job_request.h"
#include "model/job_numbers.h"
#include "model/node_classes.h"
#include "profile/measured_file.h"
#include "rpc/address.h"
#include "rpc/route.h"
#include "rpc/server.h"
#include "service/access_control.h"
#include "store/folder.h"

namespace trainyard::daemon {
namespace {

// An agent's lease must outlast the pause between two answers, or its jobs stop again and again.
Status CheckTimes(const ControllerOptions& options) {
  if (options.live.lease < 2 * options.live.heartbeat) {
    return InvalidArgument(fmt::format(
        "--lease is {} and --heartbeat {}; expected a lease of at least two heartbeats, as nodes "
        "whose lease ends between two answers stop their jobs",
        base::ShortDuration(Seconds(options.live.lease)),
        base::ShortDuration(Seconds(options.live.heartbeat))));
  }
  return {};
}

// A compact journal has no beginning: only a snapshot tells how things stand there.
Status CheckSnapshots(const live::SnapshotRules& rules) {
  return rules.compact && rules.entries == 0
             ? Status(InvalidArgument(
                   "--journal is compact and --snapshot-entries 0; expected --journal keep, or "
                   "snapshots, as no start can do without both"))
             : Status();
}

// Everything that can be wrong with the options before anything is opened: what they configure, and
// what is taken for measured.
struct Asked {
  GivenConfiguration given;
  engine::SharedConfiguration configuration;  // at a first start
  profile::MeasuredBook measured;
};

Result<Asked> Check(const ControllerOptions& options, const Configurations& configurations) {
  RETURN_IF_ERROR(CheckTimes(options));
  RETURN_IF_ERROR(CheckSnapshots(options.snapshots));
  RETURN_IF_ERROR(CheckDestinations(options.notify_program, options.notify_url));
  RETURN_IF_ERROR(rpc::CheckListenAddress("--listen", options.listen));
  Asked asked;
  ASSIGN_OR_RETURN(const GivenProfiles profiles, configurations.Take(options.profiles));
  ASSIGN_OR_RETURN(asked.given, Given(options.names, options.cluster, profiles));
  asked.given.since = LiveClock::UnixNow();
  ASSIGN_OR_RETURN(asked.configuration, configurations.Read(asked.given.Note(), {}));
  if (!options.measured.empty()) {
    ASSIGN_OR_RETURN(asked.measured, profile::ReadMeasured(options.measured));
  }
  return asked;
}

// What decisions depended on at the first start. States of 0.3.0 and earlier hold no more of it.
Result<std::string> SetupText(const ControllerOptions& options,
                              const engine::Configuration& configuration) {
  ASSIGN_OR_RETURN(const GivenConfiguration given, GivenConfiguration::From(configuration.note));
  const scenario::PresetRequest& names = given.names;
  std::string text = "preset=" + given.preset + " policy=" + names.policy +
                     " placement=" + names.placement + " admission=" + names.admission +
                     (names.grouping.empty() ? "" : " grouping=" + names.grouping) +
                     (names.tuning.empty() ? "" : " tuning=" + names.tuning) +
                     " time_scale=" + std::to_string(options.live.time_scale) +
                     " profiles=" + given.models + " nodes=";
  const Cluster& cluster = configuration.cluster;
  const model::GpuTypes types(cluster);
  for (const NodeSpec& node : cluster.nodes) {
    text += node.name + ":" + std::to_string(node.gpus);
    if (!(node.capacity == Resources{})) {
      text += ":" + std::to_string(node.capacity.milli_cpus) + ":" +
              std::to_string(node.capacity.memory_mib) + ":" +
              std::to_string(node.capacity.storage_kbps);
    }
    const double speed = cluster.SpeedOf(node.gpu_type);
    if (types.several() || speed != 1) {
      text += ":" + node.gpu_type + ":" + std::to_string(speed);
    }
    text += ",";
  }
  return text;
}

// "policy srtf, now fifo; placement packed, now none", of two texts of a setup.
std::string DifferencesOf(const std::string& kept, const std::string& now) {
  const auto values = [](const std::string& text) {
    std::map<std::string, std::string, std::less<>> of;
    for (const std::string_view word : base::Split(text, " ")) {
      const std::size_t equals = word.find('=');
      std::string_view value = equals < word.size() ? word.substr(equals + 1) : "";
      value.remove_suffix(value.ends_with(',') ? 1 : 0);
      of[std::string(word.substr(0, equals))] = value.empty() ? "none" : value;
    }
    return of;
  };
  const auto was = values(kept);
  const auto is = values(now);
  const auto value_in = [](const auto& of, const std::string& name) {
    const auto found = of.find(name);
    return found == of.end() ? "none" : found->second;
  };
  std::map<std::string, std::string, std::less<>> all = was;
  all.insert(is.begin(), is.end());
  std::string differences;
  for (const auto& [name, unused] : all) {
    if (value_in(was, name) != value_in(is, name)) {
      differences += fmt::format("{}{} {}, now {}", differences.empty() ? "" : "; ", name,
                                 value_in(was, name), value_in(is, name));
    }
  }
  return differences;
}

// The setting as it was at the first start, or as it is now if this is the first.
Result<std::string> Keep(store::Store& store, const std::string& name, const std::string& value) {
  Result<std::string> kept = store.Setting(name);
  if (kept.ok() && kept.value().empty()) {
    RETURN_IF_ERROR(store.SetSetting(name, value));
    return value;
  }
  return kept;
}

// Of the text of a setup: what cannot be changed, and is not in a configuration.
std::string TimeScaleOf(const std::string& setup) {
  const std::size_t begin = setup.find(" time_scale=") + 1;
  return setup.substr(begin, setup.find(' ', begin) - begin);
}

// The configuration with which the state begins: that of the first start, from which journal and
// snapshots lead to the present one. States of 0.3.0 and earlier do not hold it: there the first
// start since then has to have the same options.
Result<engine::SharedConfiguration> FirstConfiguration(const ControllerOptions& options,
                                                       const Asked& asked,
                                                       const Configurations& configurations,
                                                       store::Store& store) {
  ASSIGN_OR_RETURN(const std::string now, SetupText(options, *asked.configuration));
  ASSIGN_OR_RETURN(const std::string kept, Keep(store, "setup", now));
  ASSIGN_OR_RETURN(const std::string first, store.Setting("configuration"));
  const std::string differences =
      first.empty() ? DifferencesOf(kept, now) : DifferencesOf(TimeScaleOf(kept), TimeScaleOf(now));
  if (!differences.empty()) {
    return BadInput(fmt::format(
        "{}: belongs to a cluster with {}; expected the same as before{}, or another state folder",
        options.state, differences,
        first.empty() ? " for one start, after which they may change" : ""));
  }
  if (first.empty()) {
    RETURN_IF_ERROR(store.SetSetting("configuration", asked.configuration->note));
  }
  return first.empty() ? asked.configuration : configurations.Read(first, {});
}

// What was taken for measured at the first start, whatever the options say now: what has been
// decided since depends on it.
Result<profile::MeasuredBook> KeptMeasured(store::Store& store, bool is_first,
                                           const profile::MeasuredBook& given) {
  if (is_first && !given.empty()) {
    RETURN_IF_ERROR(store.SetSetting("measured", profile::MeasuredText(given)));
  }
  ASSIGN_OR_RETURN(std::string text, store.Setting("measured"));
  return text.empty() ? profile::MeasuredBook()
                      : profile::MeasuredFrom("the setting 'measured'", std::move(text));
}

// Of a version: the setting "program", which those before 0.2.0 have not written.
std::string NameOf(const std::string& writer) { return writer.empty() ? "0.1.0" : writer; }

// Why the state cannot be restored, with the program that has written to it last, unless that is
// this one: its decisions may be the reason. `writer`: the setting "program", empty before 0.2.0.
Error WithWriter(Error error, const ControllerOptions& options, const std::string& writer) {
  const std::string& present = options.snapshots.program;
  if (writer != present) {
    error.message = fmt::format(
        "{}: was written by Trainyard {}, and Trainyard {} cannot go on with it: {}; expected the "
        "former until all jobs have ended, or another --state. The journal is as it was",
        options.state, NameOf(writer), present, error.message);
  }
  return error;
}

// What a controller begins with: by its store, at a first start by its options.
struct Beginning {
  std::string writer{};  // the setting "program"
  double unix_zero = 0;
  engine::SharedConfiguration configuration{};
  profile::MeasuredBook measured{};
  model::JobNumbers numbers{};
};

Result<Beginning> BeginningOf(const ControllerOptions& options, const Asked& asked,
                              const Configurations& configurations, store::Store& store) {
  Beginning beginning;
  ASSIGN_OR_RETURN(beginning.writer, store.Setting("program"));
  ASSIGN_OR_RETURN(const std::string before, store.Setting("setup"));
  ASSIGN_OR_RETURN(beginning.measured, KeptMeasured(store, before.empty(), asked.measured));
  ASSIGN_OR_RETURN(beginning.configuration,
                   FirstConfiguration(options, asked, configurations, store));
  ASSIGN_OR_RETURN(const std::string zero,
                   Keep(store, "unix_zero", std::to_string(LiveClock::UnixNow())));
  beginning.unix_zero = base::ToNumber(zero).value_or(0);
  ASSIGN_OR_RETURN(beginning.numbers, KeptNumbers(store));
  return beginning;
}

// `beginning` and `configurations` must outlive what is made of it.
live::ControllerSetup SetupOf(const ControllerOptions& options, const Beginning& beginning,
                              const Configurations& configurations, std::uint64_t epoch) {
  live::SnapshotRules snapshots = options.snapshots;
  snapshots.interval =
      Duration{static_cast<std::int64_t>(Micros(snapshots.interval) * options.live.time_scale)};
  live::LiveOptions live = options.live;
  live.unix_zero = beginning.unix_zero;
  live.epoch = epoch;
  live.asks_who = true;
  return {.engine = {.configuration = beginning.configuration,
                     .measured = beginning.measured,
                     .numbers = &beginning.numbers,
                     .configurations = &configurations},
          .live = std::move(live),
          .snapshots = snapshots,
          .former_program = beginning.writer == snapshots.program ? "" : NameOf(beginning.writer)};
}

void Log(const ControllerOptions& options, const std::string& line) {
  if (options.log) {
    options.log(line);
  }
}

// Whose state it is, and what a crash has lost of the audit trail.
void LogBefore(const ControllerOptions& options, const Beginning& beginning,
               const AuditFile& audit) {
  if (!beginning.writer.empty() && beginning.writer != options.snapshots.program) {
    Log(options, fmt::format("the state was written by Trainyard {}; this is Trainyard {}",
                             beginning.writer, options.snapshots.program));
  }
  std::error_code none;
  if (beginning.writer.empty() &&
      std::filesystem::file_size(options.state + "/audit.jsonl", none) > 0 && !none) {
    Log(options, options.state +
                     "/controller.db has no journal, but audit.jsonl beside it has lines: a new "
                     "cluster without jobs begins. If jobs are missed, stop the controller and "
                     "put a copy of the folder back (docs/operations.md, Backup and restore)");
  }
  if (audit.added() > 0) {
    Log(options, fmt::format("audit.jsonl: {} line{} written from the journal", audit.added(),
                             audit.added() == 1 ? "" : "s"));
  }
}

void LogRestart(const ControllerOptions& options, live::Controller& controller, double seconds) {
  const live::RestartReport& restart = controller.restart();
  for (const std::string& remark : restart.remarks) {
    Log(options, remark);
  }
  if (!restart.difference.empty()) {
    Log(options, "Trainyard " + options.snapshots.program +
                     " decides otherwise than the program that has written the journal, first at " +
                     restart.difference + "; what is recorded stays");
  }
  if (restart.snapshot > 0 || restart.replayed > 0) {
    Log(options,
        fmt::format("{}, {} entries replayed, in {:.3f} s; state {:.16}",
                    restart.snapshot > 0 ? fmt::format("snapshot at entry {}", restart.snapshot)
                                         : std::string("no snapshot"),
                    restart.replayed, seconds, controller.StateDigest()));
  }
}

// `writer`: the program that has written the journal.
void LogRehearsal(const ControllerOptions& options, const live::Controller& controller,
                  const std::string& writer, double seconds) {
  const live::RestartReport& restart = controller.restart();
  Log(options,
      fmt::format("{}: {} entries of the journal{}, {} jobs, written by Trainyard {}, in {:.1f} s: "
                  "this program {}",
                  options.state, restart.replayed,
                  restart.snapshot > 0 ? fmt::format(" behind the snapshot at {}", restart.snapshot)
                                       : std::string(),
                  controller.engine().records().size(), NameOf(writer), seconds,
                  restart.difference.empty()
                      ? "decides the same in all of them"
                      : "would have decided otherwise, first at " + restart.difference));
  if (restart.difference.empty()) {
    return;
  }
  const auto text = [&controller](const std::vector<JobId>& jobs) {
    std::string numbers;
    for (const JobId job : jobs) {
      numbers +=
          (numbers.empty() ? "" : ", ") + std::to_string(controller.engine().numbers().Of(job));
    }
    return (jobs.size() == 1 ? "job " : "jobs ") + numbers;
  };
  Log(options, "a start with this program keeps what has been decided, and decides from then on; " +
                   (restart.displaced.empty() ? "every running job keeps its GPUs then"
                                              : "it would take or move the GPUs of " +
                                                    text(restart.displaced) + " at once") +
                   (restart.started.empty() ? "" : "; GPUs get " + text(restart.started)));
}

// One for each destination that the operator names.
using Outboxes = std::vector<std::unique_ptr<Outbox>>;
Result<Outboxes> OpenOutboxes(const ControllerOptions& options, store::NoticeTable& table,
                              Mailbox& mailbox) {
  Outboxes all;
  const auto add = [&](const std::string& name, Outbox::Deliver deliver) -> Status {
    ASSIGN_OR_RETURN(std::unique_ptr<Outbox> opened,
                     Outbox::Open({.name = "--notify-" + name,
                                   .former_file = options.state + "/notices/" + name,
                                   .log = options.log,
                                   .arrived = [&mailbox] { mailbox.Put([] {}); }},
                                  table, std::move(deliver)));
    all.push_back(std::move(opened));
    return {};
  };
  if (!options.notify_program.empty()) {
    RETURN_IF_ERROR(add("program", ByProgram(options.notify_program)));
  }
  if (!options.notify_url.empty()) {
    RETURN_IF_ERROR(add("url", ByUrl(options.notify_url)));
  }
  return all;
}

// Where the options ask for another configuration than at the last start, it takes the place of the
// present one with the next step. Returns the one that holds then. `which`: the options.
Result<engine::SharedConfiguration> Configure(const ControllerOptions& options,
                                              std::string_view which, GivenConfiguration given,
                                              const Configurations& configurations,
                                              live::Controller& controller) {
  const engine::SharedConfiguration& present = controller.engine().shared_configuration();
  ASSIGN_OR_RETURN(const GivenConfiguration former, GivenConfiguration::From(present->note));
  if (former.options == given.options) {
    if (!ChangesBetween(former, given).empty()) {
      Log(options,
          fmt::format(
              "configuration {} is in force, as {} has applied it; {} are those of the last "
              "start and change nothing",
              present->number, present->author.empty() ? "an earlier start" : present->author,
              which));
    }
    return present;
  }
  ASSIGN_OR_RETURN(given, Merged(former, given));
  given.changes = ChangesBetween(former, given);
  given.number = present->number + 1;
  given.author.clear();
  given.since = LiveClock::UnixNow();
  ASSIGN_OR_RETURN(engine::SharedConfiguration next, configurations.Read(given.Note(), *present));
  RETURN_IF_ERROR(controller.world().OnConfiguration(next->note));
  Log(options,
      fmt::format("configuration {}, by {}: {}", next->number, which,
                  next->changes.empty() ? "they ask for what is in force" : next->changes));
  return next;
}

std::function<void(const std::string&)> ChangesOf(const ControllerOptions& options) {
  return options.logs_changes ? options.log : std::function<void(const std::string&)>();
}

// That may join; empty: any.
std::vector<std::string> NodesOf(const ControllerOptions& options, const Cluster& cluster) {
  std::vector<std::string> nodes;
  if (options.live.open_nodes > 0) {
    return nodes;
  }
  for (const NodeSpec& node : cluster.nodes) {
    nodes.push_back(node.name);
  }
  return nodes;
}

Result<std::unique_ptr<identity::Authority>> OpenAuthority(const ControllerOptions& options,
                                                           const Cluster& cluster) {
  return identity::Authority::Open({.folder = options.state + "/identity",
                                    .all_users = options.all_users,
                                    .operators = options.operators,
                                    .admins = options.admins,
                                    .nodes = NodesOf(options, cluster),
                                    .munge = options.munge,
                                    .certificate_life = options.certificate_life,
                                    .now = {},
                                    .log = ChangesOf(options)});
}

service::Rate UserCallsOf(const ControllerOptions& options) {
  constexpr double kBurst = 10;  // seconds' worth of calls
  return {.per_s = options.user_calls, .burst = std::max(1.0, kBurst * options.user_calls)};
}

rpc::ServerOptions ServerOptionsOf(const ControllerOptions& options,
                                   service::AccessControl& access) {
  return {.listen = options.listen, .access = &access, .tls = options.tls, .log = options.log};
}

Result<std::unique_ptr<identity::Door>> OpenDoor(const ControllerOptions& options, int port,
                                                 const identity::Authority& authority) {
  return identity::Door::Open(options.socket.empty() ? identity::DoorName(port) : options.socket,
                              [&authority, tls = options.tls || !rpc::IsLoopback(options.listen)](
                                  uid_t uid) { return authority.LocalAnswer(uid, tls); });
}

// A name that nobody has gives nobody a right.
Status CheckUsers(std::string_view option, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!identity::UserId(name)) {
      return InvalidArgument(
          fmt::format("{} has '{}', and this machine knows no user of that name; expected names of "
                      "users, each by itself: [\"ann\", \"bob\"] in a file, '{} ann bob' on the "
                      "command line (users of other machines: 'trainyard user add --role')",
                      option, name, option));
    }
  }
  return {};
}

// They may be known later, as those of a directory service.
void WarnOfUsers(const ControllerOptions& options) {
  for (const Status& status :
       {CheckUsers("--operators", options.operators), CheckUsers("--admins", options.admins)}) {
    if (!status.ok()) {
      Log(options, status.error().message);
    }
  }
}

// Looks after the controller's own certificate.
Periodic Renewing(const ControllerOptions& options, identity::Authority& authority) {
  return Periodic(kLookAtCertificates, [&options, &authority] {
    if (const Status status = authority.RenewOwn(); !status.ok()) {
      Log(options, "the controller's certificate cannot be renewed: " + status.error().message);
    }
  });
}

// Takes other options while it lives.
class Reloading {
 public:
  // `configure` is given options whose configuration is good, on a thread of its own.
  Reloading(const ControllerOptions& options, service::AccessControl& access,
            rpc::RpcServer& server, std::function<void(GivenConfiguration given)> configure)
      : options_(options), configure_(std::move(configure)) {
    if (options_.reloads != nullptr) {
      options_.reloads->Serve([&](const ControllerOptions& now) -> Status {
        ASSIGN_OR_RETURN(Asked asked, Check(now, Configurations(now.profiles)));
        configure_(std::move(asked.given));
        access.authority()->SetAccess(now.all_users, now.operators, now.admins);
        access.SetUserCalls(UserCallsOf(now));
        server.CutRevoked();
        WarnOfUsers(now);
        return {};
      });
    }
  }
  ~Reloading() {
    if (options_.reloads != nullptr) {
      options_.reloads->Serve({});
    }
  }
  Reloading(const Reloading&) = delete;
  Reloading& operator=(const Reloading&) = delete;

 private:
  const ControllerOptions& options_;
  const std::function<void(GivenConfiguration given)> configure_;
};

// Kept in the store: when there was a controller last. Copies of the state have it, too.
class Presence {
 public:
  // `lease`: shorter outages need not be known.
  Presence(store::Store& store, Duration lease) : store_(store), pause_(lease / 3) {}

  // In the engine's time; none: no controller has told.
  [[nodiscard]] std::optional<TimePoint> Last(double unix_zero, double time_scale) const {
    const Result<std::string> kept = store_.Setting(kName);
    const std::optional<double> at = kept.ok() ? base::ToNumber(kept.value()) : std::nullopt;
    return at ? std::optional(AtSeconds((*at - unix_zero) * time_scale)) : std::nullopt;
  }
  // Whenever there is something to do, and at the latest when it is due. A disk that is full costs
  // jobs a restart if the controller dies meanwhile, too, and nothing else.
  void Note() {
    if (const auto now = std::chrono::steady_clock::now(); now >= due_) {
      (void)store_.SetSetting(kName, fmt::format("{:.3f}", LiveClock::UnixNow()));
      due_ = now + pause_;
    }
  }
  [[nodiscard]] std::chrono::steady_clock::time_point due() const { return due_; }

 private:
  static constexpr std::string_view kName = "present";
  store::Store& store_;
  const Duration pause_;
  std::chrono::steady_clock::time_point due_{};
};

// What a step is followed by, beside further steps.
struct Upkeep {
  const Outboxes& outboxes;
  Presence& presence;
  identity::Authority& authority;
  Transport& transport;
};

// The one loop of a controller: whatever has come in since, one step, and so on.
Status Serve(const ControllerOptions& options, live::Controller& controller, const Upkeep& upkeep,
             const LiveClock& clock, Mailbox& mailbox) {
  std::string snapshot_error;
  std::string journal_error;
  engine::SharedConfiguration configuration = controller.engine().shared_configuration();
  while (!mailbox.closed()) {
    upkeep.presence.Note();
    RETURN_IF_ERROR(controller.Step(clock.Now()));
    upkeep.transport.NoteStep();
    if (controller.engine().shared_configuration() != configuration) {
      configuration = controller.engine().shared_configuration();
      upkeep.authority.SetNodes(NodesOf(options, configuration->cluster));
    }
    for (const std::unique_ptr<Outbox>& outbox : upkeep.outboxes) {
      outbox->Save();
    }
    if (controller.snapshot_error() != snapshot_error) {
      snapshot_error = controller.snapshot_error();
      Log(options, snapshot_error.empty() ? "snapshots are taken again"
                                          : "no snapshot is taken: " + snapshot_error);
    }
    if (controller.journal_error() != journal_error) {
      journal_error = controller.journal_error();
      Log(options, journal_error.empty()
                       ? "the journal is written again"
                       : "the journal cannot be written: " + journal_error +
                             "; nothing is taken or started until it can, what runs runs on");
    }
    std::chrono::steady_clock::time_point until = upkeep.presence.due();
    if (const std::optional<TimePoint> wake = controller.next_wakeup()) {
      until = std::min(until, clock.RealTime(*wake));
    }
    for (const Mailbox::Task& task : mailbox.Take(until)) {
      task();
    }
  }
  if (!controller.Close()) {
    Log(options, "the last decision is not in the journal: " + controller.journal_error() +
                     "; nobody has been told of it");
  }
  return {};
}

// Who hears of changes and of what users asked to be told. `outboxes` must outlive the world.
void SetListeners(const ControllerOptions& options, const Outboxes& outboxes,
                  live::LiveOptions& live) {
  live.takes_notices = !outboxes.empty();
  live.log = ChangesOf(options);
  live.notice = [&outboxes](const live::Notice& notice) {
    for (const std::unique_ptr<Outbox>& outbox : outboxes) {
      outbox->Put(notice);
    }
  };
}

void BeginAll(const Outboxes& outboxes) {
  for (const std::unique_ptr<Outbox>& outbox : outboxes) {
    outbox->Begin();
  }
}

// By options that were read again.
void ConfigureAgain(const ControllerOptions& options, const GivenConfiguration& given,
                    const Configurations& configurations, live::Controller& controller) {
  const auto taken = configurations.Take(given.profiles.path);
  const Result<engine::SharedConfiguration> done =
      taken.ok() ? Configure(options, "the options that were read again", given, configurations,
                             controller)
                 : taken.error();
  if (!done.ok()) {
    Log(options, "the configuration stays as it was: " + done.error().message);
  }
}

Ready ReadyAt(int port, const engine::Configuration& configuration) {
  return {.port = port,
          .policy = configuration.policy,
          .nodes = engine::NodesThere(configuration.cluster),
          .gpus = configuration.cluster.total_gpus()};
}

// Where a rehearsal speaks.
class Unheard final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply /*reply*/) override {}
  void Send(std::uint64_t /*connection*/, v1::ControllerMessage /*message*/) override {}
  void Close(std::uint64_t /*connection*/) override {}
};

}  // namespace

Status CheckController(const ControllerOptions& options) {
  RETURN_IF_ERROR(Check(options, Configurations(options.profiles)));
  RETURN_IF_ERROR(CheckUsers("--operators", options.operators));
  return CheckUsers("--admins", options.admins);
}

Status RehearseController(const ControllerOptions& options) {
  const auto begun = std::chrono::steady_clock::now();
  Configurations configurations(options.profiles);
  ASSIGN_OR_RETURN(Asked asked, Check(options, configurations));
  const io::TemporaryFolder copy("trainyard-rehearsal");
  if (copy.path().empty()) {
    return Failed("no folder for a copy of the state can be made; expected one in TMPDIR");
  }
  RETURN_IF_ERROR(store::CopyStore(options.state, copy.path()));
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::OpenStore(copy.path()));
  RETURN_IF_ERROR(configurations.KeepIn(*store));
  ASSIGN_OR_RETURN(const Beginning beginning, BeginningOf(options, asked, configurations, *store));
  live::ControllerSetup with = SetupOf(options, beginning, configurations, store->epoch());
  with.snapshots.entries = 0;  // the whole journal, if it is there
  Unheard nobody;
  const Result<std::unique_ptr<live::Controller>> controller =
      live::Controller::Open(std::move(with), *store, nobody, TimePoint{});
  if (!controller.ok()) {
    return WithWriter(controller.error(), options, beginning.writer);
  }
  LogRehearsal(options, *controller.value(), beginning.writer,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  ASSIGN_OR_RETURN(const GivenConfiguration former,
                   GivenConfiguration::From(controller.value()->engine().configuration().note));
  ASSIGN_OR_RETURN(const GivenConfiguration next, Merged(former, asked.given));
  const std::string changes =
      former.options == asked.given.options ? "" : ChangesBetween(former, next);
  Log(options, changes.empty() ? "these options would change nothing of the configuration in force"
                               : "these options would change the configuration: " + changes);
  return {};
}

Status RunController(const ControllerOptions& options, Mailbox& mailbox,
                     const std::function<void(const Ready& ready)>& on_ready) {
  Configurations configurations(options.profiles);
  ASSIGN_OR_RETURN(Asked asked, Check(options, configurations));
  ASSIGN_OR_RETURN(std::unique_ptr<store::Store> opened, store::OpenStore(options.state));
  store::Store& store = *opened;
  RETURN_IF_ERROR(configurations.KeepIn(store));
  ASSIGN_OR_RETURN(Beginning beginning, BeginningOf(options, asked, configurations, store));
  const LiveClock clock(beginning.unix_zero, options.live.time_scale);
  Transport transport(mailbox, clock, options.log);
  const auto begun = std::chrono::steady_clock::now();
  Presence presence(store, options.live.lease);
  live::ControllerSetup with = SetupOf(options, beginning, configurations, store.epoch());
  with.absent_since = presence.Last(beginning.unix_zero, options.live.time_scale);
  ASSIGN_OR_RETURN(const SignCredentials sign, MakeCredentials(options.state, store.epoch()));
  with.live.credential = sign.start;
  with.live.attach_credential = sign.attach;
  with.live.secret = sign.secret;
  ASSIGN_OR_RETURN(const Outboxes outboxes, OpenOutboxes(options, store.notices(), mailbox));
  SetListeners(options, outboxes, with.live);
  ASSIGN_OR_RETURN(const std::unique_ptr<AuditFile> audit,
                   AuditFile::Open(options.state + "/audit.jsonl"));
  with.live.audit = audit.get();
  Result<std::unique_ptr<live::Controller>> controller =
      live::Controller::Open(std::move(with), store, transport, clock.Now());
  if (!controller.ok()) {
    return WithWriter(controller.error(), options, beginning.writer);
  }
  live::Controller& running = *controller.value();
  LogBefore(options, beginning, *audit);
  RETURN_IF_ERROR(RenumberCopy({options.state, running.world().jobs(), LiveClock::UnixNow()}, store,
                               beginning.numbers, options.log));
  BeginAll(outboxes);
  RETURN_IF_ERROR(store.SetSetting("program", options.snapshots.program));
  LogRestart(options, running,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  ASSIGN_OR_RETURN(const engine::SharedConfiguration configuration,
                   Configure(options, "the options of this start", std::move(asked.given),
                             configurations, running));
  WarnOfUsers(options);
  transport.Open(running.world());
  ASSIGN_OR_RETURN(const std::unique_ptr<identity::Authority> authority,
                   OpenAuthority(options, configuration->cluster));
  service::AccessControl access(authority.get(), {.user_calls = UserCallsOf(options)});
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::RpcServer> server,
                   rpc::StartServer(ServerOptionsOf(options, access), transport));
  ASSIGN_OR_RETURN(const std::unique_ptr<identity::Door> door,
                   OpenDoor(options, server->port(), *authority));
  const Periodic renewing = Renewing(options, *authority);
  transport.Serve(*server);
  on_ready(ReadyAt(server->port(), *configuration));
  Status status;
  {
    const Reloading reloading(options, access, *server, [&](GivenConfiguration given) {
      mailbox.Put([&, given = std::move(given)] {
        ConfigureAgain(options, given, configurations, running);
      });
    });
    status = Serve(options, running, {outboxes, presence, *authority, transport}, clock, mailbox);
  }
  transport.Stop();
  if (const Status saved = audit->Save(); !saved.ok()) {
    Log(options, "the audit trail is not complete: " + saved.error().message);
  }
  return status;
}

}  // namespace trainyard::daemon
