// SPDX-License-Identifier: Apache-2.0
#include "supervisor/local_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/emulated_attempt.h"
#include "supervisor/job/job_protocol.h"
#include "supervisor/job/stage_turns.h"
#include "supervisor/log_limit.h"
#include "supervisor/supervised_attempt.h"
#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using Clock = Attempt::Clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kLeastLog = std::uint64_t{64} << 10;  // of a worker

// A piece of a log. At its end: whether more may come is for the caller to know. Where the
// beginning has been dropped it says so.
Result<v1::LogsReply> ReadPiece(const io::Descriptor& log, const std::string& path,
                                std::uint64_t asked) {
  constexpr std::size_t kMost = std::size_t{256} << 10;
  const std::uint64_t offset = FirstKept(log.get(), asked);
  std::string bytes(kMost, '\0');
  const ssize_t got = pread(log.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (got < 0) {
    return BadInput(
        fmt::format("{}: cannot be read: {}", path, std::generic_category().message(errno)));
  }
  bytes.resize(static_cast<std::size_t>(got));
  v1::LogsReply reply;
  reply.set_next_offset(offset + bytes.size());
  reply.set_finished(bytes.size() < kMost);
  if (offset > asked) {
    bytes.insert(
        0, fmt::format("[{} bytes are gone: a log keeps its newest part only]\n", offset - asked));
  }
  reply.set_data(std::move(bytes));
  return reply;
}

bool IsSameState(const v1::AttemptReport& a, const v1::AttemptReport& b) {
  return KeyOf(a.id()) == KeyOf(b.id()) && a.state() == b.state();
}

class LocalProcesses final : public Processes {
 public:
  LocalProcesses(LocalProcessesOptions options, std::function<void()> on_reports);
  ~LocalProcesses() override;
  LocalProcesses(const LocalProcesses&) = delete;
  LocalProcesses& operator=(const LocalProcesses&) = delete;

  std::vector<v1::AttemptReport> Recover() override;
  void Start(const v1::StartAttempt& start) override;
  void Stop(const v1::AttemptId& attempt, Duration grace) override;
  void Tune(const v1::TuneAttempt& tune) override;
  void SetLease(Duration from_now, Duration grace) override;
  void Forget(const v1::AttemptId& attempt) override;
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& attempt, int rank,
                                std::uint64_t offset) override;
  bool Attach(const v1::AttachOrder& order) override;
  std::vector<v1::AttachAnswer> TakeAnswers() override;
  void Signal(const v1::AttemptId& attempt, int signal) override;
  std::vector<v1::AttemptReport> TakeReports() override;

 private:
  template <typename Do>
  void Change(const v1::AttemptId& id, Do change);
  [[nodiscard]] std::unique_ptr<Attempt> Begin(const v1::StartAttempt& start) const;
  void Loop();
  void Wait();
  [[nodiscard]] bool Advance();
  void TakeTurns(const AttemptKey& key, Attempt& attempt, Clock::time_point now);
  void LeaveTurns(const AttemptKey& key, Clock::time_point now);
  void AddTurns(const AttemptKey& key, v1::AttemptReport& report) const;
  [[nodiscard]] bool GiveTurns(Clock::time_point now);
  [[nodiscard]] io::Descriptor OpenLog(const v1::AttemptId& attempt, int rank);
  void BlameDevices(v1::AttemptReport& report) const;
  void Enqueue(v1::AttemptReport report);
  void Wake() const;

  const std::string state_folder_;
  const std::uint64_t log_limit_;
  const std::function<std::string(int gpu)> gpu_fault_;
  const SupervisedAttempt::Options supervision_;
  const std::function<void()> on_reports_;
  const io::Descriptor wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  std::mutex logs_mutex_;
  std::map<std::pair<AttemptKey, int>, io::Descriptor> logs_;  // of other users

  std::mutex mutex_;  // of all that follows
  std::condition_variable advanced_;
  std::map<AttemptKey, std::unique_ptr<Attempt>> attempts_;
  StageTurns turns_;
  std::map<AttemptKey, std::string> late_;  // why others no longer wait for them
  std::vector<v1::AttemptReport> reports_;
  std::vector<v1::AttachAnswer> answers_;
  bool ending_ = false;
  Clock::time_point lease_end_ = Clock::time_point::max();
  Duration lease_grace_{0};

  std::thread thread_;  // last: it uses the rest
};

LocalProcesses::LocalProcesses(LocalProcessesOptions options, std::function<void()> on_reports)
    : state_folder_(std::move(options.state_folder)),
      log_limit_(options.log_limit),
      gpu_fault_(std::move(options.gpu_fault)),
      supervision_{.program = std::move(options.program),
                   .patience = options.patience,
                   .launcher = LauncherCalls(std::move(options.launcher))},
      on_reports_(std::move(on_reports)),
      thread_([this] { Loop(); }) {}

LocalProcesses::~LocalProcesses() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  Wake();
  thread_.join();
}

// ------------------------------------------------------------------------------ the agent's thread

std::vector<v1::AttemptReport> LocalProcesses::Recover() {
  constexpr std::chrono::seconds kPatience(2);
  std::unique_lock lock(mutex_);
  for (AttemptFolder& folder : AttemptFolder::AllIn(state_folder_)) {
    const AttemptKey key = KeyOf(folder.id());
    if (!attempts_.contains(key)) {
      attempts_.emplace(key, std::make_unique<SupervisedAttempt>(std::move(folder), supervision_));
    }
  }
  Wake();
  advanced_.wait_for(lock, kPatience, [this] {
    return std::all_of(attempts_.begin(), attempts_.end(), [](const auto& attempt) {
      return attempt.second->report().state() != v1::AttemptReport::STATE_UNSPECIFIED;
    });
  });
  std::vector<v1::AttemptReport> found;
  for (const auto& [key, attempt] : attempts_) {
    found.push_back(attempt->report());
    found.back().set_data_set(attempt->data_set());
    AddTurns(key, found.back());
    if (found.back().state() == v1::AttemptReport::STATE_UNSPECIFIED) {
      found.back().set_state(v1::AttemptReport::RUNNING);  // as far as is known
    }
  }
  reports_.clear();  // all older than what was found
  return found;
}

void LocalProcesses::Start(const v1::StartAttempt& start) {
  const AttemptKey key = KeyOf(start.id());
  {
    const std::lock_guard lock(mutex_);
    CHECK(!attempts_.contains(key));
  }
  std::unique_ptr<Attempt> attempt = Begin(start);  // waits for the disk
  {
    const std::lock_guard lock(mutex_);
    CHECK(attempts_.emplace(key, std::move(attempt)).second);
  }
  Wake();
}

std::unique_ptr<Attempt> LocalProcesses::Begin(const v1::StartAttempt& start) const {
  const bool emulated = start.launch().workers() == v1::LaunchSpec::EMULATED;
  // Emulated attempts do not outlive the agent anyway.
  AttemptFolder folder(state_folder_, start.id(),
                       emulated ? Durability::kUnsynced : Durability::kSynced);
  v1::StartAttempt limited = start;
  limited.set_nvidia(static_cast<bool>(gpu_fault_));
  const bool launched = supervision_.launcher.there() && !emulated;
  if (log_limit_ > 0 && !emulated) {  // half for this attempt, half for those before
    if (!launched) {                  // otherwise the supervisor does, as they are its user's
      RemoveOldLogs(state_folder_, start.id().job(), log_limit_ / 2);
    }
    limited.set_log_limit(std::max(
        kLeastLog, log_limit_ / 2 / static_cast<std::uint64_t>(std::max(1, WorkersOf(start)))));
  }
  Status made = launched ? OpenForUsers(state_folder_) : Status();
  if (made.ok() && launched) {
    made = folder.KeepStart(limited);
  }
  if (made.ok()) {
    made = folder.Create(limited);
  }
  if (!made.ok()) {
    return std::make_unique<SupervisedAttempt>(std::move(folder), made.error());
  }
  if (emulated) {
    return std::make_unique<EmulatedAttempt>(std::move(folder), start, Clock::now());
  }
  return std::make_unique<SupervisedAttempt>(std::move(folder), supervision_, start);
}

void LocalProcesses::Stop(const v1::AttemptId& attempt, Duration grace) {
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  Change(attempt, [within = std::clamp(grace, Duration{0}, kLongest)](Attempt& known) {
    const Clock::time_point now = Clock::now();
    known.Stop(now, now + within);
  });
}

void LocalProcesses::Tune(const v1::TuneAttempt& tune) {
  Change(tune.id(), [&tune](Attempt& known) { known.Tune(Clock::now(), tune); });
}

bool LocalProcesses::Attach(const v1::AttachOrder& order) {
  bool taken = false;
  Change(order.id(), [&](Attempt& known) { taken = known.Attach(order); });
  return taken;
}

std::vector<v1::AttachAnswer> LocalProcesses::TakeAnswers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void LocalProcesses::Signal(const v1::AttemptId& attempt, int signal) {
  Change(attempt, [signal](Attempt& known) { known.Signal(signal); });
}

// Nothing where the attempt is not known.
template <typename Do>
void LocalProcesses::Change(const v1::AttemptId& id, Do change) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = attempts_.find(KeyOf(id)); found != attempts_.end()) {
      change(*found->second);
    }
  }
  Wake();
}

void LocalProcesses::SetLease(Duration from_now, Duration grace) {
  {
    const std::lock_guard lock(mutex_);
    lease_end_ = Clock::now() + from_now;
    lease_grace_ = grace;
  }
  // If it cannot be written, the supervisors take the last one for the present, which ends sooner.
  static_cast<void>(
      WriteLease(state_folder_, {.end = TimeSinceBoot() + from_now, .grace = grace}).ok());
  Wake();
}

void LocalProcesses::Forget(const v1::AttemptId& attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(KeyOf(attempt));
  if (found == attempts_.end()) {
    return;
  }
  CHECK(found->second->exited());
  if (supervision_.launcher.there()) {
    supervision_.launcher.Clear(found->second->folder());
  }
  // What cannot be removed is told again after the next start of the agent, and forgotten again.
  static_cast<void>(found->second->folder().Remove().ok());
  attempts_.erase(found);
}

// A log that the launcher has opened once stays open, for those who follow it.
io::Descriptor LocalProcesses::OpenLog(const v1::AttemptId& attempt, int rank) {
  constexpr std::size_t kMostOpen = 64;
  if (!supervision_.launcher.there()) {
    const std::string path = AttemptFolder(state_folder_, attempt).PathOfLog(rank);
    return io::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  const std::lock_guard lock(logs_mutex_);
  const std::pair key(KeyOf(attempt), rank);
  auto known = logs_.find(key);
  if (known == logs_.end()) {
    io::Descriptor opened = supervision_.launcher.OpenLog(attempt, rank);
    if (!opened.open()) {
      return opened;
    }
    if (logs_.size() >= kMostOpen) {
      logs_.clear();
    }
    known = logs_.emplace(key, std::move(opened)).first;
  }
  return io::Descriptor(fcntl(known->second.get(), F_DUPFD_CLOEXEC, 0));
}

Result<v1::LogsReply> LocalProcesses::ReadLog(const v1::AttemptId& attempt, int rank,
                                              std::uint64_t offset) {
  const AttemptFolder folder(state_folder_, attempt);
  bool known = false;
  bool running = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(KeyOf(attempt));
    known = found != attempts_.end();
    running = known && !found->second->exited();
  }
  const io::Descriptor log = OpenLog(attempt, rank);
  if (!log.open() && !known) {
    return BadInput(fmt::format("job {}: no log of rank {} of attempt {} on this node",
                                attempt.job(), rank, attempt.attempt()));
  }
  v1::LogsReply reply;
  reply.set_next_offset(offset);
  reply.set_finished(true);
  if (log.open()) {
    ASSIGN_OR_RETURN(v1::LogsReply piece, ReadPiece(log, folder.PathOfLog(rank), offset));
    reply = std::move(piece);
  }
  reply.set_attempt(attempt.attempt());
  reply.set_finished(reply.finished() && !running);
  return reply;
}

std::vector<v1::AttemptReport> LocalProcesses::TakeReports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

// ---------------------------------------------------------------------------------- its own thread

void LocalProcesses::Loop() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) {
        return;
      }
    }
    if (Advance()) {
      on_reports_();
    }
    Wait();
  }
}

// Whether there are new reports or answers.
bool LocalProcesses::Advance() {
  const std::lock_guard lock(mutex_);
  bool any = false;
  const Clock::time_point now = Clock::now();
  for (const auto& [key, attempt] : attempts_) {
    attempt->Advance(now);
    if (now >= lease_end_) {
      attempt->LeaseOver(now, now + lease_grace_);
    }
    TakeTurns(key, *attempt, now);
    for (v1::AttachAnswer& answer : attempt->TakeAnswers()) {
      answers_.push_back(std::move(answer));
      any = true;
    }
    for (v1::AttemptReport& report : attempt->TakeUntold()) {
      BlameDevices(report);
      AddTurns(key, report);
      Enqueue(std::move(report));
      any = true;
    }
  }
  any = GiveTurns(now) || any;
  advanced_.notify_all();
  return any;
}

void LocalProcesses::TakeTurns(const AttemptKey& key, Attempt& attempt, Clock::time_point now) {
  for (const v1::StageTurn& turn : attempt.TakeTurns()) {
    switch (turn.kind()) {
      case v1::StageTurn::WANTS:
        turns_.Join(key, MaskOf(attempt.report().gpus()), attempt.turns());
        turns_.Want(key, turn.stage(), now);
        break;
      case v1::StageTurn::ENDS:
        turns_.End(key, now);
        break;
      default:
        LeaveTurns(key, now);
    }
  }
  if (attempt.exited()) {
    LeaveTurns(key, now);
  }
}

void LocalProcesses::LeaveTurns(const AttemptKey& key, Clock::time_point now) {
  turns_.Leave(key, now);
  late_.erase(key);
}

// What only the agent knows of the attempt.
void LocalProcesses::AddTurns(const AttemptKey& key, v1::AttemptReport& report) const {
  report.set_group_iteration_s(turns_.IterationOf(key).value_or(0));
  if (const auto late = late_.find(key); late != late_.end()) {
    report.set_late(late->second);
  }
}

// Whether there are new reports: of attempts that keep others waiting, or do so no longer.
bool LocalProcesses::GiveTurns(Clock::time_point now) {
  turns_.OnTime(now);
  for (const StageTurns::Go& go : turns_.TakeGoes()) {
    attempts_.at(go.key)->Go(go.stage);
  }
  bool any = false;
  for (const StageTurns::Late& one : turns_.TakeLate()) {
    Attempt& attempt = *attempts_.at(one.key);
    if (one.alone || attempt.exited()) {
      continue;
    }
    if (one.over) {
      late_.erase(one.key);
    } else {
      late_[one.key] =
          one.stage.has_value()
              ? fmt::format(
                    "stage {} goes on for too long: the jobs that it interleaves with no "
                    "longer wait for it",
                    NameOf(*one.stage))
              : "begins no stage: the jobs that it interleaves with no longer wait for it";
    }
    v1::AttemptReport report = attempt.report();
    AddTurns(one.key, report);
    Enqueue(std::move(report));
    any = true;
  }
  return any;
}

// A worker that fails on a faulty GPU has not failed by its own fault.
void LocalProcesses::BlameDevices(v1::AttemptReport& report) const {
  const bool failed = report.state() == v1::AttemptReport::EXITED && report.exit_code() != 0 &&
                      report.cause() == v1::AttemptReport::CAUSE_UNSPECIFIED && !report.lost();
  for (int i = 0; failed && gpu_fault_ && i < report.gpus_size(); ++i) {
    if (const std::string fault = gpu_fault_(report.gpus(i)); !fault.empty()) {
      report.set_cause(v1::AttemptReport::DEVICE);
      report.set_message(fault);
      return;
    }
  }
}

// A newer report of progress replaces one that has not been taken yet.
void LocalProcesses::Enqueue(v1::AttemptReport report) {
  const auto last = std::find_if(
      reports_.rbegin(), reports_.rend(),
      [&report](const v1::AttemptReport& r) { return KeyOf(r.id()) == KeyOf(report.id()); });
  if (last != reports_.rend() && IsSameState(*last, report)) {
    *last = std::move(report);
  } else {
    reports_.push_back(std::move(report));
  }
}

void LocalProcesses::Wait() {
  std::vector<pollfd> polls{{.fd = wake_.get(), .events = POLLIN}};
  Clock::time_point due = Clock::now() + std::chrono::minutes(1);
  {
    const std::lock_guard lock(mutex_);
    if (lease_end_ > Clock::now()) {
      due = std::min(due, lease_end_);
    }
    due = std::min(due, turns_.next_due().value_or(due));
    for (const auto& [key, attempt] : attempts_) {
      due = std::min(due, attempt->NextDue());
      if (const pollfd awaited = attempt->Awaited(); awaited.fd >= 0) {
        polls.push_back(awaited);
      }
    }
  }
  const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
  poll(polls.data(), polls.size(), std::max(0, static_cast<int>(left.count())));
  std::uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &wakes, sizeof(wakes));
}

void LocalProcesses::Wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

}  // namespace

std::unique_ptr<Processes> MakeLocalProcesses(LocalProcessesOptions options,
                                              std::function<void()> on_reports) {
  return std::make_unique<LocalProcesses>(std::move(options), std::move(on_reports));
}

}  // namespace trainyard::supervisor
