// SPDX-License-Identifier: Apache-2.0
#include "live/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/earlier.h"
#include "base/text.h"
#include "base/try.h"
#include "engine/run.h"
#include "io/file.h"
#include "live/history/audit_trail.h"
#include "model/conditions.h"
#include "model/job_fields.h"

namespace trainyard::live {
namespace {

// Raised when snapshots are laid out otherwise; not for another section or another field of a job,
// of which each snapshot says how many it has. Formats 6 to 11 are read, too: before 12 sections
// had no names, before 11 no configuration followed the first.
constexpr int kFormat = 12;
constexpr int kFormatOfSections = 12;
constexpr int kFormatOfConfigurations = 11;
constexpr int kFirstFormat = 6;
constexpr int kJobFields{model::kJobFieldCount};
// Jobs of a page: some megabytes.
constexpr std::size_t kJobsOfAPage = 10'000;

// Null: there is none of that name.
const Section* FindSection(std::span<const Section> sections, std::string_view name) {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [&](const Section& one) { return name == one.name; });
  return found == sections.end() ? nullptr : &*found;
}

// "launch job 7 on n0 (2 GPUs)"; the kinds are those of model::ActionKind.
std::string ActionText(const model::Action& action, std::uint64_t number, const Cluster& cluster) {
  constexpr std::array<std::string_view, 9> kVerbs{
      "admit", "reject", "launch", "preempt", "resize", "migrate", "release", "tune", "pace"};
  std::string text =
      fmt::format("{} job {}", kVerbs.at(static_cast<std::size_t>(action.kind)), number);
  for (const Slice& slice : action.grant.slices) {
    const int gpus = std::popcount(slice.gpus);
    text +=
        fmt::format("{}{} ({})", &slice == &action.grant.slices.front() ? " on " : ", ",
                    cluster.nodes[Index(slice.node)].name, gpus == 0 ? "no GPUs" : GpusText(gpus));
  }
  return text;
}

}  // namespace

// What a snapshot begins with.
struct Controller::Header {
  int format = kFormat;
  int job_fields = kJobFields;
  std::string program{};
  std::string configuration{};          // as Configuration::note
  std::size_t jobs = 0;                 // on pages and in the section "jobs"
  std::vector<std::string> sections{};  // that follow, by their names
  [[nodiscard]] bool has_known_format() const {
    return format >= kFirstFormat && format <= kFormat;
  }
  [[nodiscard]] bool is_known() const {
    return has_known_format() && job_fields >= model::kFieldsBeforeConditions &&
           job_fields <= kJobFields;
  }
  void Serialize(StateStream& state) {
    state(format);
    if (has_known_format()) {
      state(job_fields);
    }
    if (!is_known()) {
      return;
    }
    state(program);
    if (format >= kFormatOfConfigurations) {
      state(configuration);
    }
    if (format >= kFormatOfSections) {
      state(jobs, sections);
    }
  }
};

// Tells the journal to the engine and the live world alike.
class Controller::Restorer final : public engine::World {
 public:
  Restorer(std::string_view records, TimePoint last, std::size_t followed, LiveWorld& world)
      : replay_(records, last, followed), world_(world), last_(last) {}
  model::Batch Next(std::optional<TimePoint> wake_at) override {
    model::Batch batch = replay_.Next(wake_at);
    if (!batch.done) {
      status_ = world_.Restore(batch);
      batch.done = !status_.ok();
    }
    last_ = batch.now;
    return batch;
  }
  Status Perform(TimePoint now, std::span<const model::Action> actions) override {
    Status status = replay_.Perform(now, actions);
    if (status.ok()) {
      world_.Restore(actions);
    }
    return status;
  }
  [[nodiscard]] const Status& status() const { return status_.ok() ? replay_.status() : status_; }
  [[nodiscard]] TimePoint last() const { return last_; }
  [[nodiscard]] const std::optional<engine::ReplayWorld::Difference>& difference() const {
    return replay_.difference();
  }

 private:
  engine::ReplayWorld replay_;
  LiveWorld& world_;
  TimePoint last_{};
  Status status_;
};

// "2026-11-28T09:10:11Z: recorded is 'launch job 7 on n0 (2 GPUs)', and this program would have
// decided 'nothing'"
std::string Controller::DifferenceText(const engine::ReplayWorld::Difference& difference,
                                       TimePoint at) const {
  const auto [recorded, decided] = std::mismatch(
      difference.recorded.begin(), difference.recorded.end(), difference.decided.begin(),
      difference.decided.end(), [](const model::Action& one, const model::Action& other) {
        return engine::EncodeActions({&one, 1}) == engine::EncodeActions({&other, 1});
      });
  const auto text = [this](auto action, auto end) {
    return action == end
               ? std::string("nothing")
               : ActionText(*action, engine_.numbers().Of(action->job), engine_.cluster());
  };
  return fmt::format("{}: recorded is '{}', and this program would have decided '{}'",
                     base::UtcText(world_.options().UnixSeconds(at)),
                     text(recorded, difference.recorded.end()),
                     text(decided, difference.decided.end()));
}

Controller::Controller(ControllerSetup setup, store::Log& store, LiveOutput& output)
    : rules_(setup.snapshots),
      ends_by_rule_(setup.ends_by_rule),
      absent_since_(setup.absent_since),
      former_program_(std::move(setup.former_program)),
      lease_(setup.live.Scaled(setup.live.lease)),
      retry_pause_(static_cast<std::int64_t>(1e6 * setup.live.time_scale)),
      store_(store),
      engine_(std::move(setup.engine)),
      world_(std::move(setup.live), engine_, output),
      journal_(
          [this](std::string_view block) {
            return restoring_ || block.empty() ? Status() : Write(block);
          },
          engine::Journal::Write::kEveryStep) {
  engine_.Watch(world_.touched());
}

// What cannot be written is kept, and nothing is done about it until it is.
Status Controller::Write(std::string_view block) {
  if (const Status status = store_.Append(block); !status.ok()) {
    journal_error_ = status.error().message;
    unwritten_ = block;
    retry_at_ = now_ + retry_pause_;
    world_.Withhold();
    return {};
  }
  ++entries_;
  return {};
}

bool Controller::WriteAgain() {
  if (const Status status = store_.Append(unwritten_); !status.ok()) {
    journal_error_ = status.error().message;
    retry_at_ = now_ + retry_pause_;
    return false;
  }
  ++entries_;
  unwritten_.clear();
  journal_error_.clear();
  return true;
}

bool Controller::Close() { return unwritten_.empty() || (store_.UseReserve() && WriteAgain()); }

// The first way that leads to where the last controller was.
class Controller::Opening {
 public:
  Opening(ControllerSetup setup, store::Log& store, LiveOutput& output, TimePoint now)
      : setup_(std::move(setup)), store_(store), output_(output), now_(now) {}

  Result<std::unique_ptr<Controller>> Try() {
    Result<std::vector<std::uint64_t>> found = store_.Snapshots();
    if (!found.ok()) {
      remarks_.push_back(found.error().message);
    } else {
      snapshots_ = std::move(found).value();
    }
    if (setup_.snapshots.entries > 0 && FromSnapshots(Trust::kOwn)) {
      return Opened();
    }
    if (FromAll(Trust::kOwn)) {
      return Opened();
    }
    Error error = controller_->status_.error();
    if (is_cut_ && FromSnapshots(Trust::kOtherState)) {
      return Opened();
    }
    if (!setup_.former_program.empty()) {
      const std::string difference = controller_->restart_.difference;
      if (FromAll(Trust::kDecisions) || (is_cut_ && FromSnapshots(Trust::kDecisions))) {
        controller_->restart_.difference = difference;
        return Opened();
      }
      error.message +=
          "; nor can what is recorded be taken: " + controller_->status_.error().message;
    }
    for (const std::string& remark : remarks_) {
      error.message += "; " + remark;
    }
    return error;
  }

 private:
  // A new one each time: a failed restore leaves the state undefined.
  bool Restored(std::uint64_t snapshot, Trust trust) {
    controller_.reset(new Controller(setup_, store_, output_));
    controller_->status_ = controller_->Restore(snapshot, trust, now_);
    return controller_->status_.ok();
  }

  bool FromAll(Trust trust) {
    const bool restored = Restored(0, trust);
    is_cut_ = controller_->entries_ == 0;  // its beginning has been dropped
    return restored;
  }

  bool FromSnapshots(Trust trust) {
    for (const std::uint64_t snapshot : snapshots_) {
      const std::string name = "the snapshot at entry " + std::to_string(snapshot);
      if (Restored(snapshot, trust)) {
        if (trust != Trust::kOwn) {
          remarks_.push_back(name + " is used, as the journal before it is gone");
        }
        return true;
      }
      if (trust == Trust::kOwn) {
        remarks_.push_back(name + " is not used: " + controller_->status_.error().message);
      }
    }
    return false;
  }

  std::unique_ptr<Controller> Opened() {
    controller_->restart_.remarks = remarks_;
    return std::move(controller_);
  }

  const ControllerSetup setup_;
  store::Log& store_;
  LiveOutput& output_;
  const TimePoint now_;
  std::vector<std::uint64_t> snapshots_;
  std::vector<std::string> remarks_;
  bool is_cut_ = false;
  std::unique_ptr<Controller> controller_;  // of the last try
};

Result<std::unique_ptr<Controller>> Controller::Open(ControllerSetup setup, store::Log& store,
                                                     LiveOutput& output, TimePoint now) {
  return Opening(std::move(setup), store, output, now).Try();
}

Status Controller::Restore(std::uint64_t snapshot, Trust trust, TimePoint now) {
  if (snapshot != 0) {
    RETURN_IF_ERROR(Load(snapshot, trust));
  }
  return Replay(trust, now);
}

Status Controller::Replay(Trust trust, TimePoint now) {
  std::string records;
  RETURN_IF_ERROR(store_.Read(entries_ + 1, [&](std::string_view block) {
    records += block;
    ++entries_;
    return Status();
  }));
  if (AuditTrail* const audit = world_.options().audit; audit != nullptr) {
    audit->Begin(snapshot_entry_);
  }
  const bool follows = trust == Trust::kDecisions;
  Restorer restorer(records, journal_.last(),
                    follows ? records.size() : engine::UpgradedAt(records), world_);
  if (Status run = engine::Run(engine_, restorer, &journal_); !run.ok()) {
    restart_.difference =
        restorer.difference() ? DifferenceText(*restorer.difference(), restorer.last()) : "";
    return run;
  }
  RETURN_IF_ERROR(restorer.status());
  restart_.snapshot = snapshot_entry_;
  restart_.replayed = entries_ - snapshot_entry_;
  now_ = std::max(now, restorer.last());
  RETURN_IF_ERROR(GoOn(restorer.last(), follows));
  if (follows && rules_.entries > 0) {
    TakeSnapshot();  // so that nothing need be followed again
  }
  return {};
}

// From `last`, the time of the last step that is written. After a long outage there is a decision
// at the time when agents have stopped what ran, as if the controller had been there: that is no
// run time, and uses up no time limit. `upgrades`: this program decides from now on.
Status Controller::GoOn(TimePoint last, bool upgrades) {
  const auto upgrade = [&](TimePoint at) {
    std::vector<model::Event> events;
    if (upgrades) {
      events.push_back(
          {.at = at, .fact = model::fact::Upgraded{.from = former_program_, .to = rules_.program}});
    }
    return events;
  };
  world_.Restored(now_);
  restoring_ = false;
  snapshot_at_ = now_;
  if (AuditTrail* const audit = world_.options().audit; audit != nullptr) {
    audit->End(entries_);
  }
  if (absent_since_ && now_ - std::max(*absent_since_, last) > lease_) {
    const TimePoint ended = std::max(*absent_since_, last) + lease_;
    world_.Restored(ended);
    if (world_.AbsorbOutage(upgrade(ended))) {
      RETURN_IF_ERROR(engine::Turn(engine_, world_, &journal_));
      RETURN_IF_ERROR(upgrades ? UpgradeIsWritten() : Status());
      upgrades = false;
    }
    world_.Restored(now_);
  }
  if (!upgrades || !world_.Absorb(upgrade(now_))) {
    return {};
  }
  RETURN_IF_ERROR(DecideFirst());
  return UpgradeIsWritten();
}

// Otherwise the next start would not know that another program has decided what comes before.
Status Controller::UpgradeIsWritten() const {
  return unwritten_.empty() ? Status() : Failed("the journal cannot be written: " + journal_error_);
}

Status Controller::DecideFirst() {
  std::map<JobId, Grant> held;
  for (const model::JobRecord& job : engine_.records()) {
    if (job.phase.get() == model::JobPhase::kRunning) {
      held.emplace(JobAt(static_cast<std::size_t>(&job - engine_.records().data())), job.grant);
    }
  }
  RETURN_IF_ERROR(engine::Turn(engine_, world_, &journal_));
  for (std::size_t i = 0; i < engine_.records().size(); ++i) {
    const Grant& now = engine_.records()[i].grant;
    const auto before = held.find(JobAt(i));
    if (before == held.end() && now.holds()) {
      restart_.started.push_back(JobAt(i));
    } else if (before != held.end() && !(now == before->second)) {
      restart_.displaced.push_back(JobAt(i));
    }
  }
  return {};
}

Status Controller::Step(TimePoint now) {
  now_ = std::max(now, now_);
  world_.SetNow(now_);
  if (!unwritten_.empty()) {
    if (now_ < retry_at_ || !WriteAgain()) {
      world_.Stall(journal_error_);
      return {};
    }
    world_.Release();
    released_ = true;
    return {};
  }
  released_ = false;
  const bool facts =
      world_.Absorb(ends_by_rule_ ? engine_.TakeEnds(now_) : std::vector<model::Event>());
  if (const std::optional<TimePoint> wake = engine_.next_wakeup();
      !facts && !(wake && *wake <= now_)) {
    world_.Answer();
  } else {
    RETURN_IF_ERROR(engine::Turn(engine_, world_, &journal_));
  }
  if (unwritten_.empty() && SnapshotIsDue()) {
    TakeSnapshot();
  }
  return {};
}

std::optional<TimePoint> Controller::next_wakeup() const {
  if (released_) {
    return now_;
  }
  return unwritten_.empty() ? base::Earlier(next_instant(), world_.next_timer())
                            : std::optional(retry_at_);
}

std::optional<TimePoint> Controller::next_instant() const {
  return base::Earlier(engine_.next_wakeup(), ends_by_rule_ ? engine_.next_end() : std::nullopt);
}

std::string Controller::StateDigest() {
  StateStream state;
  for (std::size_t i = 0; i < engine_.records().size(); ++i) {
    engine_.SerializeJob(JobAt(i), state);
  }
  engine_.Serialize(state);
  engine_.SerializeTold(state);
  engine_.SerializeMeasured(state);
  engine_.SerializePaused(state);
  return io::Sha256Hex(state.bytes());
}

// -------------------------------------------------------------------------------------- snapshots

bool Controller::SnapshotIsDue() const {
  const std::uint64_t since = entries_ - std::max(snapshot_entry_, tried_entry_);
  return rules_.entries > 0 && since > 0 &&
         (since >= rules_.entries || now_ - snapshot_at_ >= rules_.interval);
}

void Controller::TakeSnapshot() {
  tried_entry_ = entries_;
  snapshot_at_ = now_;
  const Status status = WriteSnapshot();
  snapshot_error_ = status.ok() ? std::string() : status.error().message;
}

// Nothing about it changes any more.
bool Controller::IsOver(JobId job) const {
  const model::JobPhase phase = engine_.records()[Index(job)].phase.get();
  return phase >= model::JobPhase::kCompleted && world_.IsOver(job);
}

void Controller::SerializeJobs(std::vector<JobId>& jobs, StateStream& state) {
  state(jobs);
  for (const JobId job : jobs) {
    if (!state.good() || Index(job) >= seen_jobs_) {
      return state.Fail();
    }
    engine_.SerializeJob(job, state);
    world_.SerializeJob(job, engine_.records()[Index(job)].spec, state);
  }
}

// All but what is on pages, in the order in which formats have come to have them.
std::vector<Section> Controller::Sections(int format) {
  std::vector<Section> all{
      {.name = "journal",
       .serialize =
           [this, format](StateStream& to) {
             to(journal_);
             if (format < kFormatOfSections) {
               to(seen_jobs_);
             }
           }},
      {.name = "jobs", .serialize = [this](StateStream& to) { SerializeJobs(open_jobs_, to); }},
      {.name = "engine", .serialize = [this](StateStream& to) { engine_.Serialize(to); }},
  };
  std::vector<Section> of_world = world_.Sections(format);
  std::move(of_world.begin(), of_world.end(), std::back_inserter(all));
  all.push_back({.name = "data",
                 .serialize = [this](StateStream& to) { engine_.SerializeTold(to); },
                 .since = 7});
  all.push_back({.name = "paused",
                 .serialize = [this](StateStream& to) { engine_.SerializePaused(to); },
                 .since = 12});
  all.push_back({.name = "measured",
                 .serialize = [this](StateStream& to) { engine_.SerializeMeasured(to); },
                 .since = 8});
  std::erase_if(all, [format](const Section& section) {
    return format < section.since || format > section.until;
  });
  std::stable_sort(all.begin(), all.end(),
                   [](const Section& a, const Section& b) { return a.since < b.since; });
  return all;
}

// Its bytes are the same when it has been read and is written again.
void Controller::SerializeState(StateStream& state, Header header,
                                std::span<const Section> sections) {
  state.SetJobFields(header.job_fields);
  state(header);
  for (std::size_t i = 0; header.format < kFormatOfSections && i < sections.size(); ++i) {
    sections[i].serialize(state);
  }
  for (const std::string& name : header.sections) {
    const Section* const section = FindSection(sections, name);
    if (section == nullptr) {
      return state.Fail();
    }
    std::string bytes;
    if (!state.reading()) {
      StateStream part;
      part.SetJobFields(header.job_fields);
      section->serialize(part);
      bytes = part.TakeBytes();
    }
    state(bytes);
    if (state.reading()) {
      StateStream part{bytes};
      part.SetJobFields(header.job_fields);
      section->serialize(part);
      if (!part.complete()) {
        return state.Fail();
      }
    }
  }
}

Status Controller::WriteSnapshot() {
  if (AuditTrail* const audit = world_.options().audit; audit != nullptr) {
    RETURN_IF_ERROR(audit->Save());  // no later start will go through what lies before
  }
  for (; seen_jobs_ < world_.jobs(); ++seen_jobs_) {
    open_jobs_.push_back(JobAt(seen_jobs_));
  }
  std::vector<JobId> still_open;
  std::vector<JobId> over;
  for (const JobId job : open_jobs_) {
    (IsOver(job) ? over : still_open).push_back(job);
  }
  store::StoredSnapshot snapshot{.block = entries_, .state = {}, .pages = {}};
  for (std::size_t from = 0; from < over.size(); from += kJobsOfAPage) {
    const std::size_t to = std::min(over.size(), from + kJobsOfAPage);
    std::vector<JobId> jobs(over.begin() + static_cast<std::ptrdiff_t>(from),
                            over.begin() + static_cast<std::ptrdiff_t>(to));
    StateStream page;
    SerializeJobs(jobs, page);
    snapshot.pages.push_back(page.TakeBytes());
  }
  const std::vector<JobId> before = std::exchange(open_jobs_, std::move(still_open));
  Header header{
      .program = rules_.program, .configuration = engine_.configuration().note, .jobs = seen_jobs_};
  const std::vector<Section> sections = Sections(kFormat);
  for (const Section& section : sections) {
    header.sections.emplace_back(section.name);
  }
  StateStream state;
  SerializeState(state, std::move(header), sections);
  snapshot.state = state.TakeBytes();
  Status status = store_.AddSnapshot(snapshot, snapshot_entry_);
  if (!status.ok()) {
    open_jobs_ = before;  // they are on no page
    return status;
  }
  const std::uint64_t older = std::exchange(snapshot_entry_, entries_);
  return rules_.compact && older > 0 ? store_.DropBlocks(older) : Status();
}

// The configuration of a snapshot, before anything else is read from it.
Status Controller::Configure(const std::string& note) {
  if (note == engine_.configuration().note) {
    return {};
  }
  ASSIGN_OR_RETURN(engine::SharedConfiguration next,
                   engine_.ReadConfiguration(note, engine_.configuration()));
  world_.Adopt(next);
  engine_.Reconfigure(std::move(next));
  return {};
}

// Errors: a section that is not known, or is there twice; one that each snapshot has is not there.
Status Controller::CheckSections(const Header& header, std::span<const Section> sections) {
  std::set<std::string_view> names;
  for (const std::string& name : header.sections) {
    if (FindSection(sections, name) == nullptr) {
      return BadInput("it has a part '" + name + "', which this version does not know");
    }
    if (!names.insert(name).second) {
      return BadInput("it has the part '" + name + "' twice");
    }
  }
  for (const Section& section : sections) {
    if (header.format >= kFormatOfSections && section.since == 0 && !names.contains(section.name)) {
      return BadInput(std::string("it lacks the part '") + section.name + "'");
    }
  }
  return {};
}

Status Controller::Load(std::uint64_t block, Trust trust) {
  ASSIGN_OR_RETURN(const store::StoredSnapshot snapshot, store_.Snapshot(block));
  StateStream begin{snapshot.state};
  Header header;
  begin(header);
  if (!header.is_known()) {
    return BadInput("its format is that of another version of Trainyard");
  }
  if (header.program != rules_.program && trust == Trust::kOwn) {
    return BadInput("it was written by Trainyard " + header.program + "; expected " +
                    rules_.program);
  }
  const std::vector<Section> sections = Sections(header.format);
  RETURN_IF_ERROR(CheckSections(header, sections));
  if (header.format >= kFormatOfConfigurations) {
    RETURN_IF_ERROR(Configure(header.configuration));
  }
  seen_jobs_ = header.jobs;
  if (header.format < kFormatOfSections) {
    begin(journal_, seen_jobs_);
  }
  std::vector<JobId> all;
  for (const std::string& bytes : snapshot.pages) {
    StateStream page{bytes};
    page.SetJobFields(header.job_fields);
    std::vector<JobId> jobs;
    SerializeJobs(jobs, page);
    if (!page.complete()) {
      return BadInput("a page of jobs that have ended cannot be understood");
    }
    all.insert(all.end(), jobs.begin(), jobs.end());
  }
  StateStream state{snapshot.state};
  SerializeState(state, header, sections);
  if (!state.complete()) {
    return BadInput("it cannot be understood");
  }
  all.insert(all.end(), open_jobs_.begin(), open_jobs_.end());
  std::sort(all.begin(), all.end());
  const bool each_once = std::adjacent_find(all.begin(), all.end()) == all.end();
  if (!each_once || all.size() != seen_jobs_ || world_.jobs() != seen_jobs_) {
    return BadInput("jobs are missing in it");
  }
  StateStream again;
  SerializeState(again, header, sections);
  if (again.bytes() != snapshot.state) {
    return BadInput("what is read from it is not what was written");
  }
  entries_ = block;
  snapshot_entry_ = block;
  world_.SetEntry(block);
  return {};
}

}  // namespace trainyard::live
