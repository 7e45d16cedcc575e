// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/check.h"
#include "base/earlier.h"
#include "base/rounding.h"
#include "engine/walk.h"
#include "model/slices.h"

namespace trainyard {
namespace {

Walk WalkOf(const Bundle& bundle) {
  if (bundle.walk) {
    return *bundle.walk;
  }
  return bundle.ordering != nullptr ? bundle.ordering->walk() : Walk{};
}

// The same GPUs in the same company; what differs is the rest of the node's share.
bool OnlyTuned(const Grant& before, const Grant& after) {
  return before.gpus == after.gpus && before.sharing == after.sharing &&
         before.group == after.group && before.running == after.running &&
         SameGpus(before.slices, after.slices);
}

// Policies that plan, or keep rounds, and not orders or lists by rank.
bool KeepsOwnTime(const Needs& needs) {
  return needs.keeps_rounds || needs.judges || needs.elastic || needs.own_slices ||
         needs.shares_gpus || needs.named_devices;
}

// Of all nodes, those that are down included: a share does not change with a failure.
Resources CapacityOf(const Cluster& cluster) {
  Resources capacity;
  for (const NodeSpec& node : cluster.nodes) {
    capacity += node.capacity;
  }
  return capacity;
}

// Null: the job states none.
const DataSet* DataOf(const JobSpec& job) {
  return job.traits && job.traits->data_set ? &*job.traits->data_set : nullptr;
}

}  // namespace

Engine::Engine(EngineSetup setup)
    : rules_(setup.rules),
      cluster_(std::move(setup.cluster)),
      bundle_(setup.bundle),
      rates_(*setup.rates),
      overheads_(std::move(setup.overheads)),
      observer_(setup.observer),
      needs_(bundle_.needs()),
      selector_(setup.selector),
      candidates_(std::move(setup.candidates)),
      forks_(setup.forks),
      ledger_(rules_, rates_),
      clock_(rules_.clock),
      data_(cluster_),
      types_(cluster_, rates_),
      packing_(cluster_, bundle_.placement, &data_, &types_),
      books_(cluster_, needs_.shares_gpus),
      all_gpus_(cluster_.total_gpus()),
      capacity_(CapacityOf(cluster_)) {
  gpus_up_ = all_gpus_;
  nodes_up_.assign(cluster_.nodes.size(), true);
  OpenBundle();
}

// What the bundle needs to decide, as if nobody had arrived yet.
void Engine::OpenBundle() {
  CHECK((bundle_.ordering == nullptr) != (bundle_.policy == nullptr));
  walk_ = WalkOf(bundle_);
  needs_ = bundle_.needs();
  admission_memory_ = bundle_.admission->NewMemory();
  placement_memory_ = bundle_.placement->NewMemory();
  grouping_memory_ = bundle_.grouping != nullptr ? bundle_.grouping->NewMemory() : nullptr;
  counting_.reset();
  if (walk_.count_first) {
    counting_.emplace(cluster_, nullptr);
  }
  if (bundle_.ordering != nullptr) {
    const bool plain =
        packing_.places_in_order() || bundle_.grouping != nullptr ||
        (!walk_.keep_running && !walk_.count_first && bundle_.placement->names_gpus());
    queue_ = std::make_unique<OrderedQueue>(
        *bundle_.ordering, *this, counting_ ? *counting_ : packing_,
        OrderedQueue::Settings{.walk = walk_,
                               .upkeep = bundle_.plain_walk ? OrderedQueue::Upkeep::kOracle
                                         : plain            ? OrderedQueue::Upkeep::kSortedList
                                                            : OrderedQueue::Upkeep::kIncremental,
                               .running_first = counts_restarts()});
    policy_memory_.reset();
  } else {
    queue_.reset();
    policy_memory_ = bundle_.policy->NewMemory();
  }
}

EngineSetup Engine::SetupOfFork(const Bundle& bundle) const {
  Cluster cluster = cluster_;
  cluster.changes.clear();  // nobody knows the failures to come
  return {.rules = rules_,
          .cluster = std::move(cluster),
          .bundle = bundle,
          .rates = &rates_,
          .overheads = overheads_};
}

std::unique_ptr<Engine> Engine::Fork(const Bundle& bundle) const {
  auto fork = std::make_unique<Engine>(SetupOfFork(bundle));
  const EngineState& state = *this;
  static_cast<EngineState&>(*fork) = state;
  fork->clock_ = clock_;
  fork->data_ = data_;
  fork->books_ = books_;
  fork->wake_at_ = snapshot_now_;
  fork->submits_to_come_ = false;
  fork->Adopt();
  fork->ExpectTheLate();
  return fork;
}

// What should have ended and has not, as happens in a live cluster, may end at any time; and the
// end of one that was late does not call for a decision in the past.
void Engine::ExpectTheLate() {
  if (first_fact_) {
    first_fact_ = std::max(*first_fact_, snapshot_now_);
  }
  while (!rules_.end.found_late && !ends_.empty() &&
         records_[ends_.top()].forecast.logged < snapshot_now_) {
    const JobId job = JobAt(ends_.top());
    const TimePoint before = record(job).forecast.logged;
    record(job).forecast = {.done = snapshot_now_, .logged = snapshot_now_};
    FileEnd(job, before);
  }
}

// Another bundle takes over the jobs that are there.
void Engine::Adopt() {
  OpenPacking();
  if (queue_) {
    for (const JobId job : live()) {
      queue_->Arrive(job, snapshot_now_);
    }
    for (const JobId job : held_) {
      queue_->Arrive(job, snapshot_now_);
      queue_->Leave(job);
    }
  }
}

// The bundle in charge, with the nodes that are up and the grants that there are.
void Engine::OpenPacking() {
  ForgetPlaced();
  packing_ = Packing(cluster_, bundle_.placement, &data_, &types_);
  OpenBundle();
  for (std::size_t node = 0; node < nodes_up_.size(); ++node) {
    if (!nodes_up_[node]) {
      packing_.SetUp(NodeAt(node), false);
      if (counting_) {
        counting_->SetUp(NodeAt(node), false);
      }
    }
  }
  for (const JobId job : running_) {
    const Grant& grant = record(job).grant;
    if (packs_grants()) {
      packing_.Add(grant);
    }
    if (counting_) {
      counting_->Add({.gpus = grant.gpus});
    }
  }
}

// ----------------------------------------------------------------------------- saved and resumed

void EngineState::Exchange(StateStream& state) {
  state(running_, unjudged_, resized_, held_, warm_sets_, snapshot_now_, first_fact_, last_fact_,
        wake_at_, submits_to_come_, arrivals_, decisions_, events_, waiting_, started_live_,
        gpus_asked_, gpus_up_, nodes_up_, node_changes_);
}

void Engine::ExchangeJob(JobId job, StateStream& state) {
  if (records_.size() <= Index(job)) {
    records_.resize(Index(job) + 1);
  }
  state(record(job));
}

// Not saved, as decisions do not depend on it: the shape of heaps; marks of past decisions (seen_,
// asked_); what a placement that starts afresh has placed last (placed_), which it would place so
// again; what is there during a step only.
bool Engine::Exchange(StateStream& state) {
  (void)live();  // without those who have ended
  std::set<JobId> ends;
  for (const std::uint32_t job : ends_.members()) {
    ends.insert(JobAt(job));
  }
  EngineState::Exchange(state);
  state(live_, ends, clock_, data_, types_, in_charge_, blocked_, first_end_, first_end_early_);
  if (state.reading()) {
    if (!state.good() || !IsPossible() ||
        (!ends.empty() && Index(*ends.rbegin()) >= records_.size())) {
      state.Fail();
      return false;
    }
    Resume();
    for (const JobId job : ends) {
      FileEnd(job, kEndOfTime);
    }
  }
  return ExchangeMemories(state) && state.good();
}

// Whether what has been read may be looked at: all jobs and nodes that it speaks of are there.
bool Engine::IsPossible() const {
  const auto is_live = [this](JobId job) { return IsLive(job); };
  const auto has_place = [this](JobId job) {
    const Slices& slices = records_[Index(job)].grant.slices;
    return std::all_of(slices.begin(), slices.end(), [this](const Slice& slice) {
      return Index(slice.node) < cluster_.nodes.size();
    });
  };
  return nodes_up_.size() == cluster_.nodes.size() &&
         (selector_ == nullptr ? in_charge_ == 0 : in_charge_ < candidates_.size()) &&
         std::all_of(live_.begin(), live_.end(), is_live) &&
         std::all_of(running_.begin(), running_.end(), is_live) &&
         std::all_of(held_.begin(), held_.end(), is_live) &&
         std::all_of(running_.begin(), running_.end(), has_place);
}

// What follows from the state that has been read.
void Engine::Resume() {
  live_stale_ = false;
  running_place_.assign(records_.size(), 0);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    running_place_[Index(running_[i])] = static_cast<std::uint32_t>(i);
  }
  if (selector_ != nullptr) {
    bundle_ = candidates_[in_charge_];
  }
  OpenPacking();
  for (const JobId job : running_) {
    books_.Own(job, record(job).grant);
  }
}

bool Engine::ExchangeMemories(StateStream& state) {
  for (Memory* const memory : {policy_memory_.get(), admission_memory_.get(),
                               placement_memory_.get(), grouping_memory_.get()}) {
    if (memory != nullptr && !memory->Exchange(state)) {
      return false;
    }
  }
  return queue_ == nullptr || queue_->Exchange(state);
}

// What the selector sees of the future.
class Engine::Foresight final : public Forecaster {
 public:
  explicit Foresight(const Engine& engine) : engine_(engine) {}
  [[nodiscard]] Outlook Forecast(std::size_t candidate,
                                 std::optional<Duration> horizon) const override {
    const std::unique_ptr<Engine> fork = engine_.Fork(engine_.candidates_[candidate]);
    engine_.forks_->Run(*fork,
                        horizon ? std::optional(engine_.snapshot_now_ + *horizon) : std::nullopt);
    Outlook outlook;
    Duration sum{0};
    for (std::size_t i = 0; i < engine_.records_.size(); ++i) {
      const JobRecord& before = engine_.records_[i];
      const JobRecord& after = fork->records_[i];
      if (after.phase.get() == JobPhase::kCompleted && before.phase.get() != JobPhase::kCompleted) {
        ++outlook.jobs;
        sum += after.logged - after.spec->submit;
      }
    }
    if (outlook.jobs > 0) {
      outlook.mean_jct = Seconds(sum) / static_cast<double>(outlook.jobs);
    }
    return outlook;
  }

 private:
  const Engine& engine_;
};

void Engine::ChooseBundle(TimePoint now) {
  const Selector::Choice choice =
      selector_->Choose(MakeSnapshot(now), candidates_.size(), Foresight(*this));
  if (observer_ != nullptr) {
    observer_->OnChoice(now, choice);
  }
  CHECK(choice.candidate < candidates_.size());
  if (choice.candidate != in_charge_) {
    in_charge_ = choice.candidate;
    bundle_ = candidates_[in_charge_];
    Adopt();
  }
}

Engine::~Engine() = default;

// ---------------------------------------------------------------------------------------- facts

Result<std::span<const Action>> Engine::Step(const Batch& batch) {
  actions_.clear();
  snapshot_now_ = batch.now;
  ledger_.SetEarly(batch.now == first_end_ ? first_end_early_ : 0);
  data_.AdvanceTo(batch.now);
  for (const Event& event : batch.events) {
    Take(event);
  }
  if (InstantHasCome(batch)) {
    if (Status status = Decide(batch.now); !status.ok()) {
      return status.error();
    }
  }
  if (observer_ != nullptr) {
    observer_->OnStep(batch.now, actions_);
  }
  return std::span<const Action>(actions_);
}

void Engine::Take(const Event& event) {
  ++events_;
  switch (event.kind) {
    case EventKind::kSubmit:
      return TakeSubmit(event);
    case EventKind::kEnded:
      if (record(event.job).forecast.logged > snapshot_now_) {
        record(event.job).forecast = {};  // sooner than predicted
      }
      return TakeEnd(event);
    case EventKind::kFailed:
      return TakeFailure(event);
    case EventKind::kGpusLost:
      if (record(event.job).phase.get() == JobPhase::kRunning) {
        TakeGpus(event.job, true);
        Undecided(event.at);
      }
      return;
    case EventKind::kProgress:
      return TakeProgress(event);
    case EventKind::kReported:
      return TakeReported(event);
    case EventKind::kResize:
      return TakeResize(event);
    case EventKind::kNodeDown:
    case EventKind::kNodeUp:
    case EventKind::kNodeDrained:
      return TakeNode(event);
    case EventKind::kNodeUndrained:
    case EventKind::kNoted:
      return;
    case EventKind::kBarred:
      return TakeBarred(event);
    case EventKind::kCancel:
      return TakeCancel(event);
    case EventKind::kNoMoreSubmits:
      submits_to_come_ = false;
      return;
  }
}

void Engine::Undecided(TimePoint at) {
  first_fact_ = first_fact_ ? std::min(*first_fact_, at) : at;
  last_fact_ = last_fact_ ? std::max(*last_fact_, at) : at;
}

void Engine::TakeSubmit(const Event& event) {
  if (records_.size() <= Index(event.job)) {
    records_.resize(Index(event.job) + 1);
    running_place_.resize(records_.size(), 0);
  }
  JobRecord& job = record(event.job);
  job.spec = event.spec;
  job.arrival = arrivals_++;
  job.phase.To(JobPhase::kArrived);
  ledger_.Open(job, event.at);
  Price(job);
  clock_.Anchor(event.at);
  unjudged_.push_back(event.job);
  ++waiting_;
  Undecided(event.at);
}

void Engine::TakeEnd(const Event& event) {
  JobRecord& job = record(event.job);
  Progress& progress = job.progress;
  // A registered end may lie before or after the exact one.
  if (const TimePoint until = std::min(event.at, snapshot_now_); progress.as_of < until) {
    ledger_.Fold(job, until);
  }
  progress.debt = snapshot_now_ - progress.as_of;  // held without progress until now
  ledger_.Fold(job, snapshot_now_);
  progress.work_left = 0;
  job.done = event.at;
  job.logged = job.forecast.logged == kEndOfTime ? event.at : job.forecast.logged;
  Leave(event.job, JobPhase::kCompleted);
  Undecided(job.logged);
}

void Engine::TakeFailure(const Event& event) {
  JobRecord& job = record(event.job);
  ledger_.Fold(job, std::max(snapshot_now_, job.progress.as_of));
  job.done = event.at;
  job.logged = event.at;
  Leave(event.job, JobPhase::kFailed);
  Undecided(event.at);
}

// A live job ends; its GPUs, if it has any, are free again.
void Engine::Leave(JobId id, JobPhase phase) {
  JobRecord& job = record(id);
  job.phase.To(phase);
  if (queue_) {
    queue_->Leave(id);
  }
  held_.erase(id);
  (void)Act(ActionKind::kRelease, id);
  if (job.grant.gpus > 0) {
    books_.Disown(id, job.grant);
    Unpack(job.grant);
    StopData(job);
    job.grant = {};
    SetRunning(id, false);
  } else {
    --waiting_;
  }
  ForgetEnd(id);
  live_stale_ = true;
  gpus_asked_ -= job.spec->gpus;
  started_live_ -= job.started ? 1 : 0;
}

void Engine::TakeProgress(const Event& event) {
  JobRecord& job = record(event.job);
  if (!job.phase.live()) {
    return;
  }
  ledger_.Fold(job, std::max(snapshot_now_, job.progress.as_of));
  job.progress.work_left = std::max(0.0, job.total_work - event.work_done);
  if (job.grant.gpus > 0 && !rules_.end.by_plan) {
    Predict(event.job, job.progress.as_of, false);
  }
  Requeue(event.job);
  // A correction of the books is no cause to decide.
}

// Told at the next decision; no cause for one, or jobs could keep the engine busy by talking.
void Engine::TakeReported(const Event& event) {
  JobRecord& job = record(event.job);
  if (!job.phase.live()) {
    return;
  }
  for (const Metric& metric : event.metrics) {
    const auto place = std::lower_bound(
        job.reported.begin(), job.reported.end(), metric.name,
        [](const Metric& known, const std::string& name) { return known.name < name; });
    if (place != job.reported.end() && place->name == metric.name) {
      place->value = metric.value;
    } else if (job.reported.size() < kMaxMetrics) {
      job.reported.insert(place, metric);
    }
  }
  Requeue(event.job);
}

void Engine::TakeResize(const Event& event) {
  JobRecord& job = record(event.job);
  const auto spec = std::make_shared<JobSpec>(*job.spec);
  spec->gpus = event.gpus;
  if (job.phase.get() == JobPhase::kRunning) {
    TakeGpus(event.job, false);
    --job.preemptions;
    ++job.resizes;
  }
  if (job.phase.live()) {
    gpus_asked_ += spec->gpus - job.spec->gpus;
  }
  job.spec = spec;
  ledger_.Learn(job);
  Price(job);
  if (job.phase.live() && !held_.contains(event.job)) {
    resized_.push_back(event.job);
    Requeue(event.job);
  }
  Undecided(event.at);
}

// Its place in the order may be another one now.
void Engine::Requeue(JobId job) {
  if (queue_ && !held_.contains(job)) {
    queue_->Changed(job, snapshot_now_);
  }
}

void Engine::TakeBarred(const Event& event) {
  JobRecord& job = record(event.job);
  if (!job.phase.live()) {
    return;
  }
  const auto spec = std::make_shared<JobSpec>(*job.spec);
  const auto traits = job.spec->traits ? std::make_shared<JobTraits>(*job.spec->traits)
                                       : std::make_shared<JobTraits>();
  traits->avoided = event.barred;
  spec->traits = traits;
  job.spec = spec;
  if (event.held != held_.contains(event.job)) {
    Hold(event.job, event.held);
  } else {
    Requeue(event.job);
  }
  Undecided(event.at);
}

void Engine::Hold(JobId job, bool held) {
  if (held && record(job).phase.get() == JobPhase::kRunning) {
    TakeGpus(job, false);
  }
  if (held) {
    held_.insert(job);
    std::erase(live_, job);
    if (queue_) {
      queue_->Leave(job);
    }
    return;
  }
  held_.erase(job);
  live_.insert(
      std::find_if(live_.begin(), live_.end(),
                   [&](JobId other) { return record(other).arrival > record(job).arrival; }),
      job);
  if (queue_) {
    queue_->Return(job, snapshot_now_);
  }
}

void Engine::TakeNode(const Event& event) {
  const bool up = event.kind == EventKind::kNodeUp;
  if (up == packing_.up(event.node)) {
    return;
  }
  if (!up) {
    TakeNodeDown(event.node, event.kind == EventKind::kNodeDown);
  }
  const int gpus = cluster_.nodes[Index(event.node)].gpus;
  gpus_up_ += up ? gpus : -gpus;
  nodes_up_[Index(event.node)] = up;
  ++node_changes_;
  ForgetPlaced();
  packing_.SetUp(event.node, up);
  if (counting_) {
    counting_->SetUp(event.node, up);
  }
  Undecided(event.at);
}

void Engine::TakeNodeDown(NodeId node, bool loses_work) {
  std::vector<JobId> lost;
  for (const JobId job : running_) {
    const Slices& slices = record(job).grant.slices;
    if (std::any_of(slices.begin(), slices.end(),
                    [node](const Slice& slice) { return slice.node == node; })) {
      lost.push_back(job);
    }
  }
  std::sort(lost.begin(), lost.end());
  for (const JobId job : lost) {
    TakeGpus(job, loses_work);
  }
  if (loses_work) {  // a node that is drained keeps what it has
    data_.Clear(node);
  }
}

void Engine::TakeGpus(JobId job, bool loses_work) {
  ledger_.Fold(record(job), snapshot_now_);
  if (loses_work) {
    ledger_.RollBack(record(job), cluster_.checkpoint_interval);
  }
  Unpack(record(job).grant);
  Drop(job, snapshot_now_);
  if (queue_) {
    queue_->LostGpus(job, snapshot_now_);
  }
}

void Engine::TakeCancel(const Event& event) {
  JobRecord& job = record(event.job);
  if (job.phase.get() == JobPhase::kRunning) {
    Unpack(job.grant);
    Drop(event.job, snapshot_now_);
    --job.preemptions;
  }
  ledger_.Fold(job, std::max(snapshot_now_, job.progress.as_of));
  gpus_asked_ -= job.phase.live() ? job.spec->gpus : 0;
  if (job.phase.live() && queue_) {
    queue_->Leave(event.job);
  }
  held_.erase(event.job);
  std::erase(unjudged_, event.job);
  job.phase.To(JobPhase::kCancelled);
  job.done = event.at;
  job.logged = event.at;
  started_live_ -= job.started ? 1 : 0;
  live_stale_ = true;
  --waiting_;
  Undecided(event.at);
}

// -------------------------------------------------------------------------------------- instants

bool Engine::SubmitIsLone() const {
  if (submits_to_come_ || !first_fact_ || *first_fact_ != *last_fact_) {
    return false;
  }
  switch (rules_.clock.lone) {
    case DecisionClock::Lone::kDelayed:
      return false;
    case DecisionClock::Lone::kStarted:
      return NoEndsToCome() && !wake_at_;
    case DecisionClock::Lone::kSubmits:
      return true;
  }
  return false;
}

bool Engine::NoEndsToCome() const {
  return rules_.end.by_plan ? ends_.empty() : started_live_ == 0;
}

bool Engine::EndIsLone() const {
  if (rules_.clock.lone != DecisionClock::Lone::kStarted || submits_to_come_ || first_fact_ ||
      wake_at_) {
    return false;
  }
  if (!rules_.end.by_plan && static_cast<std::int64_t>(ends_.size()) != started_live_) {
    return false;  // a job that has started and holds nothing now ends some time, too
  }
  const TimePoint first = records_[ends_.top()].forecast.logged;
  return std::all_of(ends_.members().begin(), ends_.members().end(),
                     [&](std::uint32_t job) { return records_[job].forecast.logged == first; });
}

std::optional<TimePoint> Engine::FactInstant() const {
  if (!first_fact_) {
    return std::nullopt;
  }
  return clock_.InstantFor(*first_fact_, SubmitIsLone());
}

std::optional<TimePoint> Engine::next_wakeup() const {
  std::optional<TimePoint> wake = FactInstant();
  if (wake_at_) {
    wake = Earlier(wake, clock_.InstantFor(*wake_at_, false));
  }
  if (rules_.clock.mode == DecisionClock::Mode::kRounds && !running_.empty() && clock_.last()) {
    wake = Earlier(wake, clock_.InstantFor(*clock_.last(), false));
  }
  if (rules_.clock.mode == DecisionClock::Mode::kArrivals && !submits_to_come_ && clock_.last() &&
      (!running_.empty() || waiting_ > 0)) {
    wake = Earlier(wake, *clock_.last() + rules_.clock.length);
  }
  return wake;
}

bool Engine::InstantHasCome(const Batch& batch) const {
  const std::optional<TimePoint> wake = next_wakeup();
  return wake && *wake <= batch.now;
}

std::optional<TimePoint> Engine::next_end() const {
  if (ends_.empty() || rules_.end.found_late) {
    return std::nullopt;
  }
  const TimePoint logged = records_[FirstEnd()].forecast.logged;
  return rules_.end.release_at_instant ? clock_.InstantFor(logged, EndIsLone()) : logged;
}

// The job with whose end those that lie close to the earliest come.
std::size_t Engine::FirstEnd() const {
  std::size_t first = ends_.top();
  if (!rules_.end.join_by_priority) {
    return first;
  }
  const TimePoint earliest = records_[first].forecast.logged;
  const TimePoint until = earliest + FromSeconds(rules_.end.join_relative * Seconds(earliest));
  const auto rank = [this](std::size_t job) {
    return std::pair(records_[job].spec->priority, records_[job].arrival);
  };
  for (const std::uint32_t job : ends_.members()) {
    if (records_[job].forecast.logged <= until && rank(job) < rank(first)) {
      first = job;
    }
  }
  return first;
}

TimePoint Engine::JoinedUntil(TimePoint first) const {
  return first +
         std::max(rules_.end.join_absolute, FromSeconds(rules_.end.join_relative * Seconds(first)));
}

std::vector<Event> Engine::TakeEnds(TimePoint now) {
  std::vector<Event> events;
  if (const std::optional<TimePoint> due = next_end(); !due || *due > now) {
    return events;  // an end that waits for its instant is not told with the facts before it
  }
  const Forecast first = records_[FirstEnd()].forecast;
  first_end_ = first.logged;
  first_end_early_ = first.done == first.logged ? first.early : 0;
  const TimePoint until = std::max(now, JoinedUntil(first.logged));
  while (!ends_.empty() && records_[ends_.top()].forecast.logged <= until) {
    const JobId job = JobAt(ends_.top());
    ForgetEnd(job);
    if (record(job).forecast.logged > now || rules_.end.join_by_priority) {
      record(job).forecast = {.done = now, .logged = now};  // joins the first one
    }
    if (record(job).grant.gpus == 0 && !rules_.end.without_gpus) {
      Undecided(record(job).forecast.logged);  // planned, but the job has come to hold nothing
      continue;
    }
    events.push_back({.kind = EventKind::kEnded, .at = record(job).forecast.done, .job = job});
  }
  return events;
}

// -------------------------------------------------------------------------------------- decisions

Status Engine::Decide(TimePoint now) {
  if (rules_.accrual.every_instant) {
    BringUpToDate(now);
  }
  if (selector_ != nullptr) {
    ChooseBundle(now);
  }
  Judge(MakeSnapshot(now));
  const Snapshot snapshot = MakeSnapshot(now);
  Result<Selection> selection = Select(snapshot);
  if (!selection.ok()) {
    return selection.error();
  }
  blocked_ = std::move(selection.value().blocked);
  if (bundle_.tuning != nullptr) {
    Tune(selection.value(), snapshot);
  }
  if (Status status = Perform(std::move(selection).value(), now); !status.ok()) {
    return status;
  }
  ChargeAndPredict(now);
  if (queue_) {
    queue_->Settle(MakeSnapshot(now), changed_);
    wake_at_ = queue_->wake_at();
  }
  clock_.Decided(now);
  first_fact_.reset();
  last_fact_.reset();
  resized_.clear();
  ++decisions_;
  Observe(now);
  return {};
}

void Engine::BringUpToDate(TimePoint now) {
  std::vector<JobId> finished;
  for (const JobId id : running_) {
    JobRecord& job = record(id);
    if (rules_.end.found_late && job.forecast.done <= now) {
      finished.push_back(id);
      continue;
    }
    const TimePoint since = job.progress.as_of;
    const double work_before = job.progress.work_left;
    ledger_.Fold(job, now);
    ledger_.ForgetDebt(job);
    if (rules_.end.by_plan && job.progress.work_left <= 0 && now > since) {
      job.forecast.logged = since + CeilToSecond(work_before / job.progress.rate);
      finished.push_back(id);
    }
  }
  if (rules_.debt.charge == Debt::Charge::kEveryArrival) {
    for (const JobId id : live()) {
      if (JobRecord& job = record(id); job.grant.gpus == 0 && job.started_late) {
        ledger_.ForgetDebt(job);
      }
    }
  }
  std::sort(finished.begin(), finished.end());
  for (const JobId job : finished) {  // sooner than planned, or since the last decision
    TakeEnd({.kind = EventKind::kEnded, .at = record(job).forecast.done, .job = job});
  }
}

Snapshot Engine::MakeSnapshot(TimePoint now) const {
  return {.now = now,
          .cluster = &cluster_,
          .gpus_up = gpus_up_,
          .nodes_up = &nodes_up_,
          .node_changes = node_changes_,
          .jobs_waiting = waiting_,
          .gpus_asked = gpus_asked_,
          .jobs = this,
          .resized = resized_,
          .unjudged = unjudged_,
          .rates = &rates_,
          .costs = this};
}

void Engine::Judge(const Snapshot& snapshot) {
  if (!unjudged_.empty() && !bundle_.admission->by_policy()) {
    ApplyAll(bundle_.admission->Admit(snapshot, admission_memory_.get()), snapshot.now);
  }
}

void Engine::ApplyAll(std::span<const Verdict> verdicts, TimePoint now) {
  for (const Verdict& verdict : verdicts) {
    if (verdict.judgement != Judgement::kLater) {
      Apply(verdict.job, verdict, now);
    }
  }
  std::erase_if(unjudged_,
                [this](JobId job) { return record(job).phase.get() != JobPhase::kArrived; });
}

void Engine::Apply(JobId job, const Verdict& verdict, TimePoint now) {
  JobRecord& record = this->record(job);
  if (verdict.judgement == Judgement::kReject) {
    record.phase.To(JobPhase::kRejected);
    ledger_.Fold(record, now);
    --waiting_;
    actions_.push_back({.kind = ActionKind::kReject, .job = job, .reason = verdict.reason});
    return;
  }
  record.phase.To(JobPhase::kWaiting);
  record.idle_since = now;
  gpus_asked_ += record.spec->gpus;
  live_.push_back(job);
  actions_.push_back({.kind = ActionKind::kAdmit, .job = job});
  if (queue_) {
    queue_->Arrive(job, now);
  }
}

Result<Selection> Engine::Select(const Snapshot& snapshot) {
  if (!queue_) {
    return SelectOfPolicy(snapshot);
  }
  if (bundle_.grouping != nullptr) {
    return SelectGroups(snapshot);
  }
  return packing_.places_in_order() ? SelectInOrder(snapshot)
                                    : Result<Selection>(SelectOfOrdering(snapshot));
}

// All live jobs in their order, as gangs that the grouping makes of them.
Result<Selection> Engine::SelectGroups(const Snapshot& snapshot) {
  std::vector<RankedJob> jobs;
  for (const OrderedQueue::Ranked& ranked : queue_->InOrder(snapshot)) {
    const Grant& held = record(ranked.job).grant;
    jobs.push_back({.id = ranked.job,
                    .spec = record(ranked.job).spec.get(),
                    .grant = held.gpus > 0 ? &held : nullptr,
                    .rank = static_cast<double>(jobs.size())});
  }
  std::vector<Demand> demands =
      bundle_.grouping->Group(snapshot, jobs, walk_, grouping_memory_.get());
  if (Status status = CheckDemands(demands); !status.ok()) {
    return status.error();
  }
  return PlaceProposed(std::move(demands), walk_);
}

// All live jobs in their order, or those that fit by count.
Result<Selection> Engine::SelectInOrder(const Snapshot& snapshot) {
  const std::span<const OrderedQueue::Ranked> list = queue_->InOrder(snapshot);
  if (!counting_ && !walk_.largest_first) {
    return PlaceList(list);
  }
  Result<Selection> selection =
      PlaceInOrder(counting_ ? FitByCount(list) : OrderedQueue::DemandsOf(list), walk_);
  if (counting_ && selection.ok()) {
    counting_->Clear();
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      if (!placed_slices_[i].empty()) {
        counting_->Add({.gpus = placed_[i].gpus});
      }
    }
  }
  return selection;
}

// Those that find enough free GPUs, wherever these are.
std::vector<Demand> Engine::FitByCount(std::span<const OrderedQueue::Ranked> list) {
  std::vector<Demand> fitting;
  counting_->Clear();
  if (walk_.misfit == Misfit::kEvictTail) {
    std::vector<Demand> demands = OrderedQueue::DemandsOf(list);
    for (const Placed& placed : WalkDemands(demands, walk_, *this, *counting_).placed) {
      fitting.push_back({.job = placed.job, .gpus = placed.grant.gpus});
    }
    return fitting;
  }
  int left = counting_->free_gpus();
  for (const OrderedQueue::Ranked& ranked : list) {
    if (ranked.gpus <= left) {
      fitting.push_back({.job = ranked.job, .gpus = ranked.gpus});
      left -= ranked.gpus;
    } else if (left == 0 || walk_.misfit == Misfit::kStop) {
      break;
    }
  }
  return fitting;
}

// To an incomplete selection: those who hold GPUs and of whom it says nothing, as they are.
void Engine::AddKept(Selection& selection) const {
  std::vector<bool> named(records_.size(), false);
  for (const JobId job : selection.dropped) {
    named[Index(job)] = true;
  }
  for (const Placed& placed : selection.placed) {
    named[Index(placed.job)] = true;
  }
  for (const JobId job : running_) {
    if (!named[Index(job)]) {
      selection.placed.push_back({job, grant(job)});
    }
  }
}

Selection Engine::SelectOfOrdering(const Snapshot& snapshot) {
  Selection selection = queue_->Select(snapshot, counting_ ? *counting_ : packing_);
  if (!counting_) {
    return selection;
  }
  // The counted selection as a whole list, so that it can be placed anew.
  if (!selection.complete) {
    AddKept(selection);
    selection.dropped.clear();
    std::sort(selection.placed.begin(), selection.placed.end(),
              [this](const Placed& a, const Placed& b) {
                return record(a.job).arrival < record(b.job).arrival;
              });
  }
  return PlaceCounted(selection);
}

// Where nothing is kept and the placement places all at once, it is asked first.
Selection Engine::PlaceCounted(const Selection& selection) {
  if (!walk_.keep_running && packing_.places_all()) {
    if (Result<Selection> placed = PlaceAll(LargestFirst(selection)); placed.ok()) {
      placed.value().blocked = selection.blocked;
      return std::move(placed).value();
    }
  }
  Selection placed = PlaceSelected(selection, walk_, *this, packing_);
  const auto sum = [](const Selection& of) {
    int gpus = 0;
    for (const Placed& one : of.placed) {
      gpus += one.grant.gpus;
    }
    return gpus;
  };
  counting_->Remove({.gpus = sum(selection) - sum(placed)});  // counted, but found no place
  return placed;
}

bool Engine::IsLive(JobId job) const {
  return Index(job) < records_.size() && records_[Index(job)].phase.live();
}

// Whether a policy may say something about the job.
Status Engine::CheckLive(JobId job, std::string_view to) const {
  if (Index(job) >= records_.size() || !records_[Index(job)].spec) {
    return Failed("policy '" + std::string(DeciderName()) + "': there is no job " +
                  std::to_string(Index(job)));
  }
  if (const JobPhase phase = records_[Index(job)].phase.get(); !records_[Index(job)].phase.live()) {
    return Broken(job, "is " + std::string(Name(phase)) + " and cannot " + std::string(to));
  }
  return {};
}

// What a policy may not ask for, whatever the mode: jobs it does not know, or one twice.
Status Engine::CheckDemands(std::span<const Demand> demands) {
  asked_.resize(records_.size(), 0);
  const auto mark = static_cast<std::uint32_t>(decisions_ + 1);
  for (const Demand& demand : demands) {
    if (!IsLive(demand.job)) {
      return CheckLive(demand.job, "hold GPUs");
    }
    if (demand.gpus < 0) {
      return Broken(demand.job, "is given a negative number of GPUs");
    }
    if (std::exchange(asked_[Index(demand.job)], mark) == mark) {
      return NamedTwice(demand.job);
    }
    if (demand.sharing != Sharing::kExclusive || !demand.partners.empty()) {
      if (Status status = CheckSharing(demand, mark); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

Error Engine::NamedTwice(JobId job) const { return Broken(job, "is named twice in a proposal"); }

Status Engine::CheckSharing(const Demand& demand, std::uint32_t mark) {
  if (demand.sharing != Sharing::kExclusive && !needs_.shares_gpus) {
    return Broken(demand.job, "shares GPUs, which the policy did not announce");
  }
  if (!demand.partners.empty() && demand.sharing != Sharing::kInterleaved) {
    return Broken(demand.job, "has partners, but is not interleaved");
  }
  for (const JobId partner : demand.partners) {
    if (!IsLive(partner)) {
      return CheckLive(partner, "hold GPUs");
    }
    if (std::exchange(asked_[Index(partner)], mark) == mark) {
      return NamedTwice(partner);
    }
  }
  return {};
}

// One verdict for each job that waits for one, and for no other.
Status Engine::CheckVerdicts(std::span<const Verdict> verdicts) {
  std::vector<JobId> judged;
  judged.reserve(verdicts.size());
  for (const Verdict& verdict : verdicts) {
    judged.push_back(verdict.job);
  }
  std::sort(judged.begin(), judged.end());
  std::vector<JobId> expected = unjudged_;
  std::sort(expected.begin(), expected.end());
  if (judged == expected) {
    return {};
  }
  return Failed("policy '" + std::string(DeciderName()) + "' gives " +
                std::to_string(judged.size()) + " verdicts for " + std::to_string(expected.size()) +
                " arrivals, or for jobs that did not arrive; expected one for each arrival");
}

Result<Selection> Engine::SelectOfPolicy(const Snapshot& snapshot) {
  Proposal proposal = bundle_.policy->Decide(snapshot, policy_memory_.get());
  if (Status status = CheckVerdicts(proposal.verdicts); !status.ok()) {
    return status.error();
  }
  ApplyAll(proposal.verdicts, snapshot.now);
  if (Status status = CheckDemands(proposal.demands); !status.ok()) {
    return status.error();
  }
  for (const PlannedEnd& end : proposal.ends) {
    if (!IsLive(end.job)) {
      return CheckLive(end.job, "be given an end").error();
    }
  }
  wake_at_ = proposal.wake_at;
  planned_ends_ = std::move(proposal.ends);
  PutStaysFirst(proposal.demands);
  return PlaceProposed(std::move(proposal.demands), bundle_.walk.value_or(proposal.walk));
}

// Running jobs that are no victims yet come before all others, asked for or not. A policy that
// plans or keeps a round of its own counts the costs itself.
void Engine::PutStaysFirst(std::vector<Demand>& demands) const {
  if (KeepsOwnTime(needs_)) {
    return;
  }
  std::vector<Demand> first;
  for (const JobId job : running_) {
    if (records_[Index(job)].stay > Duration{0} && at(job).stay_left > Duration{0}) {
      first.push_back({.job = job, .gpus = grant(job).gpus});
    }
  }
  if (first.empty()) {
    return;
  }
  std::sort(first.begin(), first.end(),
            [](const Demand& a, const Demand& b) { return a.job < b.job; });
  std::erase_if(demands, [&first](Demand& demand) {
    const auto stays = std::lower_bound(first.begin(), first.end(), demand.job,
                                        [](const Demand& a, JobId job) { return a.job < job; });
    if (stays == first.end() || stays->job != demand.job) {
      return false;
    }
    if (demand.gpus == stays->gpus) {
      *stays = std::move(demand);
    }
    return true;
  });
  first.insert(first.end(), std::make_move_iterator(demands.begin()),
               std::make_move_iterator(demands.end()));
  demands = std::move(first);
}

// Demands in priority order.
Result<Selection> Engine::PlaceProposed(std::vector<Demand> demands, const Walk& walk) {
  if (packing_.places_in_order()) {
    return PlaceInOrder(std::move(demands), walk);
  }
  if (walk.keep_running && !needs_.shares_gpus && walk.misfit != Misfit::kEvictTail) {
    return needs_.own_slices ? TakeNamed(std::move(demands))
                             : Result<Selection>(PlaceOthers(std::move(demands), walk));
  }
  Arrange(demands, walk);
  if (!walk.keep_running && packing_.places_all()) {
    return PlaceAll(std::move(demands));
  }
  packing_.Clear();
  Selection selection = WalkDemands(demands, walk, *this, packing_);
  if (!packs_grants()) {
    packing_.Clear();
  }
  return selection;
}

// As the policy has named the GPUs of those that start or move: nobody chooses, and the books check
// that nobody is in another's way.
Result<Selection> Engine::TakeNamed(std::vector<Demand> demands) {
  const std::uint32_t mark = MarkOfDecision();
  Selection selection;
  selection.placed.reserve(demands.size());
  for (Demand& demand : demands) {
    const Grant& held = record(demand.job).grant;
    if (demand.gpus > 0) {
      seen_[Index(demand.job)] = mark;
    }
    if (Stays(demand, held)) {
      continue;
    }
    if (demand.slices.empty() && held.gpus == demand.gpus) {
      demand.slices = held.slices;
    }
    if (Status status = CheckNamed(demand); !status.ok()) {
      return status.error();
    }
    Placed& placed = selection.placed.emplace_back();
    placed.job = demand.job;
    placed.grant.gpus = demand.gpus;
    placed.grant.slices = std::move(demand.slices);
    placed.grant.running = demand.running;
    placed.restart = demand.restart;
    placed.credit = demand.credit;
  }
  selection.dropped = RunningUnseen(mark);
  return selection;
}

// Whether there are such GPUs; who else holds them is another question.
Status Engine::CheckNamed(const Demand& demand) const {
  if (demand.slices.empty() != (demand.gpus == 0)) {
    return Broken(demand.job, demand.gpus == 0 ? "is given no GPUs, but some are named"
                                               : "is given GPUs, but none are named");
  }
  for (const Slice& slice : demand.slices) {
    if (Index(slice.node) >= cluster_.nodes.size()) {
      return Broken(demand.job, "is given GPUs of a node that there is not");
    }
    const NodeSpec& node = cluster_.nodes[Index(slice.node)];
    if (!nodes_up_[Index(slice.node)]) {
      return Broken(demand.job, "is given GPUs of node " + node.name + ", which is down");
    }
    if (slice.gpus == 0 || kMaxGpusPerNode - std::countl_zero(slice.gpus) > node.gpus) {
      return Broken(demand.job, "is given GPUs that node " + node.name + " does not have");
    }
  }
  return {};
}

// Those whose grants do not stay as they are; the others are not touched.
Selection Engine::PlaceOthers(std::vector<Demand> demands, const Walk& walk) {
  const std::uint32_t mark = MarkOfDecision();
  std::erase_if(demands, [this, mark](const Demand& demand) {
    const bool stays = Stays(demand, record(demand.job).grant);
    if (stays) {
      seen_[Index(demand.job)] = mark;
    }
    return stays;
  });
  LoosenOthers(mark);
  Arrange(demands, walk);
  Selection selection = WalkDemands(demands, walk, *this, packing_);
  selection.complete = false;
  for (const Placed& placed : selection.placed) {
    if (placed.grant.gpus > 0) {
      seen_[Index(placed.job)] = mark;
    }
  }
  selection.dropped = RunningUnseen(mark);
  return selection;
}

// Running jobs without this mark in `seen_`, ascending.
std::vector<JobId> Engine::RunningUnseen(std::uint32_t mark) const {
  std::vector<JobId> unseen(running_.size());
  unseen.erase(std::copy_if(running_.begin(), running_.end(), unseen.begin(),
                            [this, mark](JobId job) { return seen_[Index(job)] != mark; }),
               unseen.end());
  std::sort(unseen.begin(), unseen.end());
  return unseen;
}

// Takes them out of the packing.
std::vector<JobId> Engine::LoosenOthers(std::uint32_t mark) {
  std::vector<JobId> loose = RunningUnseen(mark);
  for (const JobId job : loose) {
    packing_.Remove(record(job).grant);
  }
  return loose;
}

// Whether the demand, where running jobs are kept, is for what the job holds.
bool Engine::Stays(const Demand& demand, const Grant& held) {
  return held.gpus > 0 && held.gpus == demand.gpus && !demand.restart &&
         demand.credit == Duration{0} && held.sharing == demand.sharing &&
         held.running == demand.running && held.group.empty() && demand.partners.empty() &&
         (demand.slices.empty() || demand.slices == held.slices);
}

// Into the order in which they are tried: what stays as it is keeps its slices.
void Engine::Arrange(std::vector<Demand>& demands, const Walk& walk) {
  const auto rest = walk.keep_running ? KeptFirst(demands) : demands.begin();
  if (walk.largest_first) {
    SortLargestFirst(demands, rest);
  }
}

// Moves those whose job holds as many GPUs already to the front; returns where the others begin.
std::vector<Demand>::iterator Engine::KeptFirst(std::vector<Demand>& demands) {
  std::vector<Demand>& others = scratch_demands_;
  auto end = demands.begin();
  const auto holds_as_many = [this](const Demand& demand) {
    return demand.gpus > 0 && record(demand.job).grant.gpus == demand.gpus;
  };
  if (std::none_of(demands.begin(), demands.end(), holds_as_many)) {
    return end;
  }
  for (auto demand = demands.begin(); demand != demands.end(); ++demand) {
    if (!holds_as_many(*demand)) {
      others.push_back(std::move(*demand));
    } else if (end++ != demand) {
      *(end - 1) = std::move(*demand);
    }
  }
  std::move(others.begin(), others.end(), end);
  others.clear();
  return end;
}

Result<Selection> Engine::PlaceAll(std::vector<Demand> demands) {
  placed_ = std::move(demands);
  if (!packing_.ChooseAll(placed_, placed_slices_, placement_memory_.get())) {
    return Failed("policy '" + std::string(DeciderName()) + "' with placement '" +
                  std::string(bundle_.placement->name()) + "': the demands do not fit together");
  }
  return Pack();
}

// By the placement itself, which also says how much CPU, memory and storage bandwidth each gets.
Result<Selection> Engine::PlaceInOrder(std::vector<Demand> demands, const Walk& walk) {
  if (walk.largest_first) {
    SortLargestFirst(demands, demands.begin());
  }
  for (Demand& demand : demands) {
    if (demand.preferred == Resources{}) {
      demand.preferred = record(demand.job).preferred;
    }
  }
  const auto same = static_cast<std::size_t>(
      std::mismatch(demands.begin(), demands.end(), placed_.begin(), placed_.end(),
                    [](const Demand& a, const Demand& b) {
                      return a.job == b.job && a.gpus == b.gpus && a.preferred == b.preferred &&
                             !a.restart && a.credit == b.credit;
                    })
          .first -
      demands.begin());
  if (StaysPlaced(same, demands.size())) {
    return Selection{.blocked = placed_blocked_};
  }
  placed_.resize(same);
  std::move(demands.begin() + static_cast<std::ptrdiff_t>(same), demands.end(),
            std::back_inserter(placed_));
  return PlaceBehind(same);
}

// Likewise, those of the queue as it has them.
Result<Selection> Engine::PlaceList(std::span<const OrderedQueue::Ranked> list) {
  const auto same = static_cast<std::size_t>(
      std::mismatch(list.begin(), list.end(), placed_.begin(), placed_.end(),
                    [](const OrderedQueue::Ranked& a, const Demand& b) {
                      return a.job == b.job && a.gpus == b.gpus;
                    })
          .first -
      list.begin());
  if (StaysPlaced(same, list.size())) {
    return Selection{.blocked = placed_blocked_};
  }
  placed_.resize(same);
  placed_.reserve(list.size());
  for (const OrderedQueue::Ranked& ranked : list.subspan(same)) {
    placed_.push_back(
        {.job = ranked.job, .gpus = ranked.gpus, .preferred = record(ranked.job).preferred});
  }
  return PlaceBehind(same);
}

// Whether `size` demands, of which the first `same` are those that were placed last, would all stay
// as they are.
bool Engine::StaysPlaced(std::size_t same, std::size_t size) const {
  return bundle_.placement->places_afresh() && is_as_placed_ && same == size &&
         same == placed_.size();
}

// So that all is placed as if for the first time.
void Engine::ForgetPlaced() {
  placed_.clear();
  placed_slices_.clear();
  is_as_placed_ = false;
}

// The demands of `placed_`, of which the first `same` were the first ones last time, too.
Result<Selection> Engine::PlaceBehind(std::size_t same) {
  const bool afresh = bundle_.placement->places_afresh();
  packing_.ChooseInOrder(placed_, afresh ? same : 0, *this, placed_slices_,
                         placement_memory_.get());
  CHECK(placed_slices_.size() == placed_.size());
  Selection selection = Pack();
  if (const std::optional<NodeId> node = packing_.Overcommitted()) {
    return Failed("placement '" + std::string(bundle_.placement->name()) + "' gives more of node " +
                  cluster_.nodes[Index(*node)].name + " than it has");
  }
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const Demand& demand = placed_[i];
    if (demand.gpus > 0 && placed_slices_[i].empty()) {
      const DemandClass of = packing_.ClassOf(*record(demand.job).spec, demand.gpus);
      if (!selection.Blocks(of)) {
        selection.blocked.push_back({demand.job, demand.gpus, packing_.WhyNot(of), of.kind});
      }
    }
  }
  placed_blocked_ = selection.blocked;
  is_as_placed_ = true;
  return selection;
}

// The demands of `placed_` on their `placed_slices_`.
Selection Engine::Pack() {
  Selection selection;
  if (!packs_grants()) {
    PackAll(selection);
  } else {
    PackMoved(selection);
  }
  return selection;
}

// Brings the packing, which holds what the jobs hold, up to date; the selection says what changes.
void Engine::PackMoved(Selection& selection) {
  std::vector<std::size_t> moved;
  std::size_t holders = 0;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const Grant& held = record(placed_[i].job).grant;
    const Slices& slices = placed_slices_[i];
    const int gpus = slices.empty() ? 0 : placed_[i].gpus;
    holders += held.gpus > 0 ? 1 : 0;
    if (held.gpus == gpus && held.slices == slices) {
      if (placed_[i].gpus == 0 && !started(placed_[i].job)) {
        moved.push_back(i);
      }
      continue;
    }
    if (held.gpus > 0) {
      packing_.Remove(held);
    }
    if (gpus > 0) {
      moved.push_back(i);
    } else {
      selection.dropped.push_back(placed_[i].job);
    }
  }
  if (holders < running_.size()) {
    DropUnasked(selection);
  }
  std::sort(selection.dropped.begin(), selection.dropped.end());
  selection.placed.reserve(moved.size());
  for (const std::size_t i : moved) {
    AddPlaced(i, selection);
  }
}

// Those who hold GPUs and for whom none are demanded.
void Engine::DropUnasked(Selection& selection) {
  const std::uint32_t mark = MarkOfDecision();
  for (const Demand& demand : placed_) {
    seen_[Index(demand.job)] = mark;
  }
  const std::vector<JobId> loose = LoosenOthers(mark);
  selection.dropped.insert(selection.dropped.end(), loose.begin(), loose.end());
}

void Engine::PackAll(Selection& selection) {
  packing_.Clear();
  selection.complete = true;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    if (placed_[i].gpus == 0 || !placed_slices_[i].empty()) {
      AddPlaced(i, selection);
    }
  }
}

void Engine::AddPlaced(std::size_t number, Selection& selection) {
  selection.placed.push_back(
      {placed_[number].job, {.gpus = placed_[number].gpus, .slices = placed_slices_[number]}});
  packing_.Add(selection.placed.back().grant);
}

// Asks the tuning about everybody who will hold GPUs, also those who keep theirs. O(running).
void Engine::Tune(Selection& selection, const Snapshot& snapshot) {
  if (!selection.complete) {
    AddKept(selection);
  }
  std::vector<Tuning::Tuned> jobs;
  std::vector<Slices> packed;  // as the packing has them, in the order of `placed`
  for (Placed& placed : selection.placed) {
    packed.push_back(placed.grant.slices);
    if (placed.grant.gpus == 0) {
      continue;
    }
    const Grant& held = record(placed.job).grant;
    const bool settled = OnlyTuned(held, placed.grant);
    if (settled) {
      placed.grant.slices = held.slices;
    }
    jobs.push_back({placed.job, record(placed.job).spec.get(), &placed.grant.slices, settled});
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const Tuning::Tuned& a, const Tuning::Tuned& b) { return a.job < b.job; });
  bundle_.tuning->Tune(snapshot, jobs);
  if (!packs_grants()) {
    return;
  }
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packing_.Replace(packed[i], selection.placed[i].grant.slices);
  }
}

// For `seen_` at this decision.
std::uint32_t Engine::MarkOfDecision() {
  seen_.resize(records_.size(), 0);
  return static_cast<std::uint32_t>(decisions_ + 1);
}

// Whoever holds GPUs and is to hold none.
void Engine::DropAll(const Selection& selection, TimePoint now) {
  std::vector<JobId> dropped = selection.dropped;
  if (selection.complete) {
    const std::uint32_t mark = MarkOfDecision();
    for (const Placed& placed : selection.placed) {
      if (placed.grant.gpus > 0) {
        seen_[Index(placed.job)] = mark;
      }
    }
    dropped = RunningUnseen(mark);
  }
  for (const JobId job : dropped) {
    Drop(job, now);
  }
}

// The desired state against the present one: launches, preemptions, resizes and migrations.
Status Engine::Perform(Selection selection, TimePoint now) {
  changed_.clear();
  DropAll(selection, now);
  std::vector<Placed*> differing;
  differing.reserve(selection.placed.size());
  for (Placed& placed : selection.placed) {
    if (placed.grant.gpus == 0) {
      MarkStarted(placed.job, now);
      continue;
    }
    if (placed.restart || !(record(placed.job).grant == placed.grant)) {
      books_.Disown(placed.job, record(placed.job).grant);
      differing.push_back(&placed);
    }
  }
  for (Placed* placed : differing) {
    if (Status status = CheckGrant(placed->job, placed->grant); !status.ok()) {
      return status;
    }
    books_.Own(placed->job, placed->grant);
    if (books_.used() > gpus_up_) {
      return Broken(placed->job, "more GPUs are granted than the cluster has");
    }
    Give(*placed, now);
  }
  if (needs_.shares_gpus) {
    MeetNeighbours(now);
  }
  return {};
}

std::string_view Engine::DeciderName() const {
  return bundle_.ordering != nullptr ? bundle_.ordering->name() : bundle_.policy->name();
}

Error Engine::Broken(JobId job, const std::string& what) const {
  return Failed("policy '" + std::string(DeciderName()) + "' with placement '" +
                std::string(bundle_.placement->name()) + "': job " +
                records_[Index(job)].spec->name + ": " + what);
}

Status Engine::CheckGrant(JobId job, const Grant& grant) {
  if (!bundle_.placement->names_gpus()) {
    return {};
  }
  if (const std::string objection = books_.Objection(job, grant); !objection.empty()) {
    return Broken(job, objection);
  }
  if (types_.several()) {
    if (const std::string objection = types_.Objection(*records_[Index(job)].spec, grant);
        !objection.empty()) {
      return Broken(job, objection);
    }
  }
  return {};
}

void Engine::Unpack(const Grant& grant) {
  is_as_placed_ = false;
  if (!packs_grants()) {
    return;
  }
  packing_.Remove(grant);
  if (counting_) {
    counting_->Remove(grant);
  }
}

// The packing and the books are up to date; makes the record so. Takes the grant.
void Engine::Give(Placed& placed, TimePoint now) {
  const JobId id = placed.job;
  JobRecord& job = record(id);
  Grant& grant = placed.grant;
  ledger_.Fold(job, now);
  changed_.push_back(id);
  if (!placed.restart && job.grant.gpus > 0 && OnlyTuned(job.grant, grant)) {
    job.grant = grant;
    Run(job);
    Act(ActionKind::kTune, id).grant = std::move(grant);
    return;
  }
  ActionKind kind = ActionKind::kLaunch;
  Change change = job.started ? Change::kRestart : Change::kStart;
  if (job.grant.gpus == 0) {
    job.phase.To(JobPhase::kRunning);
    SetRunning(id, true);
  } else if (job.started) {
    const bool resized = job.grant.gpus != grant.gpus;
    const bool moved = !SameGpus(job.grant.slices, grant.slices);
    kind = resized ? ActionKind::kResize : ActionKind::kMigrate;
    change = resized ? Change::kResize : moved ? Change::kMigrate : Change::kRestart;
    ++(resized ? job.resizes : moved ? job.migrations : job.preemptions);
  }
  StopData(job);
  job.grant = grant;
  job.productive_before_attempt = job.progress.productive_time;
  Run(job);
  if (grant.running) {
    MarkStarted(id, now);
    StartData(job, change);
    Charge(job, change);
    ledger_.Credit(job, placed.credit);
  }
  job.stay = StayOf(job);
  Act(kind, id).grant = std::move(grant);
}

// One more action for the world.
Action& Engine::Act(ActionKind kind, JobId job) {
  Action& action = actions_.emplace_back();
  action.kind = kind;
  action.job = job;
  return action;
}

std::vector<const JobSpec*> Engine::SpecsOf(std::span<const JobId> jobs) const {
  std::vector<const JobSpec*> specs;
  specs.reserve(jobs.size());
  for (const JobId job : jobs) {
    specs.push_back(records_[Index(job)].spec.get());
  }
  return specs;
}

// At the rate of its new grant. Those who are collocated learn of one another in MeetNeighbours.
void Engine::Run(JobRecord& job) {
  if (job.grant.group.empty()) {
    return ledger_.Run(job, {});
  }
  const std::vector<const JobSpec*> group = SpecsOf(job.grant.group);
  ledger_.Run(job, {.group = group});
}

// The rates of jobs that are collocated, now that everybody is in place. O(running x GPUs).
void Engine::MeetNeighbours(TimePoint now) {
  for (const JobId id : running_) {
    JobRecord& job = record(id);
    if (job.grant.sharing != Sharing::kCollocated || !job.grant.running) {
      continue;
    }
    std::vector<JobId> neighbours = books_.Neighbours(id, job.grant);
    std::erase_if(neighbours, [this](JobId other) { return !record(other).grant.running; });
    const std::vector<const JobSpec*> collocated = SpecsOf(neighbours);
    const Company company{.collocated = collocated};
    if (rates_.RateUnder(*job.spec, job.grant, company) != job.progress.rate) {
      ledger_.Fold(job, now);
      ledger_.Run(job, company);
      changed_.push_back(id);
    }
  }
}

void Engine::MarkStarted(JobId id, TimePoint now) {
  JobRecord& job = record(id);
  if (!job.started) {
    job.started = true;
    job.started_late = job.idle_since < now;
    job.first_start = now;
    ++started_live_;
  }
}

void Engine::Drop(JobId id, TimePoint now) {
  JobRecord& job = record(id);
  ledger_.Fold(job, now);
  books_.Disown(id, job.grant);
  StopData(job);
  job.grant.gpus = 0;
  job.grant.slices.clear();  // its storage is for the next grant
  job.grant.group.clear();
  job.grant.sharing = Sharing::kExclusive;
  job.grant.running = true;
  ledger_.Stop(job);
  job.phase.To(JobPhase::kWaiting);
  ++job.preemptions;
  SetRunning(id, false);
  if (!rules_.end.by_plan) {
    ForgetEnd(id);
  }
  ++waiting_;
  changed_.push_back(id);
  (void)Act(ActionKind::kPreempt, id);
}

void Engine::SetRunning(JobId job, bool running) {
  if (running) {
    running_place_[Index(job)] = static_cast<std::uint32_t>(running_.size());
    running_.push_back(job);
    --waiting_;
    return;
  }
  const std::uint32_t place = running_place_[Index(job)];
  running_[place] = running_.back();
  running_place_[Index(running_[place])] = place;
  running_.pop_back();
}

bool Engine::IsRestartInstant() const {
  return rules_.debt.restart_every > 0 && decisions_ > 0 &&
         decisions_ % rules_.debt.restart_every == 0;
}

bool Engine::Charges(Change change) const {
  const bool starts = change == Change::kStart || change == Change::kRestart;
  const Debt::Charge rule = rules_.debt.charge;
  return rule == Debt::Charge::kChange || (rule == Debt::Charge::kStart && starts);
}

Duration Engine::ChangeCost(const JobSpec& job, Change change, int gpus) const {
  return Charges(change) ? overheads_.Cost(change, job, gpus, all_gpus_, IsRestartInstant())
                         : Duration{0};
}

// What starts of the job on the GPUs it requests cost, where the rules count that.
void Engine::Price(JobRecord& job) const {
  if (counts_restarts()) {
    job.start_cost = Of(*job.spec, Change::kStart, job.spec->gpus);
    job.restart_cost = Of(*job.spec, Change::kRestart, job.spec->gpus);
  }
}

// How long the job, which has been given GPUs and charged for that, trains before it may be a
// victim.
Duration Engine::StayOf(const JobRecord& job) const {
  if (!counts_restarts()) {
    return Duration{0};
  }
  const std::optional<Duration> own =
      bundle_.ordering != nullptr ? bundle_.ordering->Stay(*job.spec) : Duration{0};
  if (!own) {
    return rules_.preemption.min_runtime;
  }
  constexpr int kCostsPerStay = 10;  // at most 1/11 of the GPU time goes to restarts
  return std::max({rules_.preemption.min_runtime, *own,
                   kCostsPerStay * (job.progress.debt + job.restart_cost)});
}

// Where the job will lie is not known here, so that the longest fetch counts.
Duration Engine::Of(const JobSpec& job, Change change, int gpus) const {
  const DataSet* const data = DataOf(job);
  return ChangeCost(job, change, gpus) +
         (data != nullptr && Charges(change) ? data_.LongestWait(*data) : Duration{0});
}

void Engine::Charge(JobRecord& job, Change change) {
  const auto of_change = [&](const JobSpec& spec) {
    return ChangeCost(spec, change, job.grant.gpus);
  };
  const Duration cost = GroupCost(job, of_change) + job.fetch;
  if (cost.count() > 0) {
    ledger_.Charge(job, cost);
  }
}

// It has a new grant.
void Engine::StartData(JobRecord& job, Change change) {
  const DataSet* const data = DataOf(*job.spec);
  if (data != nullptr) {
    const Duration wait = data_.Start(*data, job.grant.slices);
    job.fetch = Charges(change) ? wait : Duration{0};
  }
}

// The grant ends, if there is one: what has not been waited for is not owed any more. The caller
// folds first.
void Engine::StopData(JobRecord& job) {
  const DataSet* const data = DataOf(*job.spec);
  if (data != nullptr && job.grant.running) {
    data_.Stop(*data, job.grant.slices);
    job.progress.debt -= std::min(job.progress.debt, job.fetch);
    job.fetch = Duration{0};
  }
}

// What the job owes if `cost_of` says what each member of its group costs.
template <typename CostOf>
Duration Engine::GroupCost(const JobRecord& job, CostOf cost_of) const {
  if (!rules_.debt.group_sum || job.grant.group.empty()) {
    return cost_of(*job.spec);
  }
  Duration sum{0};
  for (const JobId member : job.grant.group) {
    sum += cost_of(*records_[Index(member)].spec);
  }
  return sum;
}

void Engine::ChargeAndPredict(TimePoint now) {
  const bool restart = IsRestartInstant();
  const Debt::Charge rule = rules_.debt.charge;
  const bool arrivals = rule == Debt::Charge::kEveryArrival;
  if (arrivals ? submits_to_come_ : restart || rule == Debt::Charge::kEveryInstant) {
    ChargeAll(restart);
  }
  if (rules_.end.by_plan) {
    return RegisterPlannedEnds();
  }
  const std::vector<JobId>& stale = rules_.accrual.every_instant ? running_ : changed_;
  for (const JobId job : stale) {
    if (record(job).grant.gpus > 0) {
      Predict(job, now, restart);
    }
  }
}

void Engine::ChargeAll(bool restart) {
  if (rules_.debt.charge == Debt::Charge::kEveryArrival) {
    for (const JobId id : live()) {
      if (JobRecord& job = record(id); job.started) {
        ledger_.Charge(
            job, overheads_.Cost(Change::kRestart, *job.spec, job.spec->gpus, all_gpus_, restart));
      }
    }
    return;
  }
  for (const JobId id : running_) {
    JobRecord& job = record(id);
    const bool warm = rules_.debt.warm_sets && WarmsUp(job.grant);
    ledger_.Charge(job, GroupCost(job, [&](const JobSpec& spec) {
                     return warm ? overheads_.WarmCost(all_gpus_)
                                 : overheads_.Cost(Change::kRestart, spec, job.grant.gpus,
                                                   all_gpus_, restart);
                   }));
  }
  if (restart) {
    warm_sets_.clear();
  }
}

// Whether a job of that size has been there before; it has from now on.
bool Engine::WarmsUp(const Grant& grant) {
  const Slice& first = grant.slices.front();
  return !warm_sets_.emplace(first.node, std::countr_zero(first.gpus), grant.gpus).second;
}

void Engine::RegisterPlannedEnds() {
  for (const PlannedEnd& end : planned_ends_) {
    JobRecord& job = record(end.job);
    const TimePoint before = job.forecast.logged;
    job.forecast.logged = end.registered + job.progress.debt;
    job.forecast.done = end.done.value_or(job.forecast.logged);
    FileEnd(end.job, before);
  }
}

bool Engine::EndsSooner(std::size_t a, std::size_t b) const {
  const TimePoint x = records_[a].forecast.logged;
  const TimePoint y = records_[b].forecast.logged;
  return x != y ? x < y : a < b;
}

void Engine::ForgetEnd(JobId job) {
  if (EndIsFiled(job)) {
    ends_.Erase(Index(job), end_positions_,
                [this](std::size_t a, std::size_t b) { return EndsSooner(a, b); });
  }
}

void Engine::Predict(JobId job, TimePoint now, bool charge_counts) {
  const TimePoint before = record(job).forecast.logged;
  ledger_.Predict(record(job), now, charge_counts);
  if (record(job).forecast.logged == kEndOfTime) {
    ForgetEnd(job);
  } else {
    FileEnd(job, before);
  }
}

bool Engine::EndIsFiled(JobId job) const {
  return Index(job) < end_positions_.size() && end_positions_[Index(job)] != kNotInHeap;
}

// `before`: the end as it was filed, if it is.
void Engine::FileEnd(JobId job, TimePoint before) {
  const auto sooner = [this](std::size_t a, std::size_t b) { return EndsSooner(a, b); };
  if (!EndIsFiled(job)) {
    ends_.Push(Index(job), end_positions_, sooner);
  } else if (record(job).forecast.logged != before) {
    ends_.Update(Index(job), end_positions_, sooner);
  }
}

// ------------------------------------------------------------------------------------------ views

const Blocked* Engine::blocked(JobId job) const {
  const JobSpec& spec = *records_[Index(job)].spec;
  const std::optional<DemandClass> of = types_.KnownClassOf(spec, spec.gpus);
  const auto found = std::find_if(blocked_.begin(), blocked_.end(), [&of](const Blocked& blocked) {
    return of && blocked.gpus == of->gpus && blocked.kind == of->kind;
  });
  return found == blocked_.end() ? nullptr : &*found;
}

std::span<const JobId> Engine::live() const {
  if (live_stale_) {
    std::erase_if(live_, [this](JobId job) { return !records_[Index(job)].phase.live(); });
    live_stale_ = false;
  }
  return live_;
}

JobView Engine::at(JobId job) const {
  const JobRecord& record = records_[Index(job)];
  JobView view = ledger_.View(job, record, snapshot_now_, needs_.work_left);
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  view.shares = {.gpus = share(record.spec->gpus, all_gpus_),
                 .cpus = share(record.preferred.milli_cpus, capacity_.milli_cpus),
                 .memory = share(record.preferred.memory_mib, capacity_.memory_mib)};
  return view;
}

double Engine::work_left(JobId job) const {
  return needs_.work_left ? ledger_.WorkLeft(records_[Index(job)], snapshot_now_) : 0;
}

void Engine::Settle(TimePoint now) {
  for (JobRecord& job : records_) {
    if (job.phase.live() || job.phase.get() == JobPhase::kArrived) {
      ledger_.Fold(job, std::max(now, job.progress.as_of));
    }
  }
  if (observer_ != nullptr) {
    observer_->OnStep(now, {});
  }
}

void Engine::Observe(TimePoint now) {
  if (observer_ != nullptr) {
    observer_->OnDecision({.now = now,
                           .gpus_used = books_.used(),
                           .jobs_running = static_cast<std::int64_t>(running_.size()),
                           .jobs_waiting = waiting_,
                           .gpus_up = gpus_up_});
  }
}

}  // namespace trainyard
