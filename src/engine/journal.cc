// SPDX-License-Identifier: Apache-2.0
#include "engine/journal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "base/varint.h"
#include "model/job_fields.h"

namespace trainyard::engine {
namespace {

constexpr char kBatchRecord = 1;
constexpr char kActionsRecord = 2;
// A job's fields by their places (model/job_fields.h). Those before the flags are always there,
// those behind them where their flag is set, or where they have none.
constexpr int kFlagsPlace = 11;  // of best_effort, which is flag 0 and no more
constexpr int kTraitsFlag = 4;   // the job has traits; higher flags come only with it
// Fields behind this place come last, each with its place, where the job states any of them: 64 is
// then added to the kind of the fact. So it is to that of a fact about several jobs, whose others
// come last.
constexpr int kLastPlace = 23;
constexpr char kMoreJob = 64;
// Added to the kind of an action whose grant has more than GPUs, CPUs and memory.
constexpr char kMoreGrant = 64;

constexpr std::size_t kBlock = std::size_t{1} << 16;

// A few numbers on their way to the buffer: cheaper than one by one.
class Numbers {
 public:
  Numbers& operator+=(char byte) {
    bytes_[size_++] = byte;
    return *this;
  }
  // To the buffer, and afresh.
  void Hand(std::string& out) {
    out.append(bytes_.data(), size_);
    size_ = 0;
  }
  // The same unless there is room for so many numbers more.
  void MakeRoom(std::size_t numbers, std::string& out) {
    if (size_ + numbers * base::kLongestVarint > bytes_.size()) {
      Hand(out);
    }
  }

 private:
  std::array<char, 14 * base::kLongestVarint> bytes_;
  std::size_t size_ = 0;
};

void PutText(std::string& out, std::string_view text) {
  base::PutVarint(out, text.size());
  out += text;
}

// ------------------------------------------------------------------------------ fields of a job

constexpr auto kByPlace = [] {
  std::array<std::size_t, model::kJobFieldCount> order{};
  order.fill(model::kJobFieldCount);
  std::size_t field = 0;
  model::ForEachJobField([&](const auto& one) {
    order.at(static_cast<std::size_t>(one.info.journal.place) - 1) = field++;
  });
  return order;
}();
static_assert(std::find(kByPlace.begin(), kByPlace.end(), model::kJobFieldCount) == kByPlace.end(),
              "the places of a job's fields in the journal are not 1, 2, 3, ... each once: a new "
              "field of src/model/job_fields.h takes the number after the last");

template <typename Visit, std::size_t... kAt>
void ForEachByPlace(Visit&& visit, std::index_sequence<kAt...> /*all*/) {
  (visit(std::get<kByPlace[kAt]>(model::kJobFields)), ...);
}
template <typename Visit>
void ForEachByPlace(Visit&& visit) {
  ForEachByPlace(visit, std::make_index_sequence<model::kJobFieldCount>());
}

bool IsThere(const model::JobFieldInfo& info, int flags) {
  return info.journal.place != kFlagsPlace && info.journal.place <= kLastPlace &&
         (info.journal.flag < 0 || (flags >> info.journal.flag & 1) != 0);
}

constexpr bool HasFlag(const model::JobFieldInfo& info) { return info.journal.flag >= 0; }
constexpr bool IsLast(const model::JobFieldInfo& info) { return info.journal.place > kLastPlace; }

int FlagsOf(const JobSpec& job) {
  int flags = job.traits ? 1 << kTraitsFlag : 0;
  model::ForEachJobField<HasFlag>([&](const auto& field) {
    flags |= model::States(job, field) ? 1 << field.info.journal.flag : 0;
  });
  return flags;
}

// The fields that the job states behind kLastPlace.
std::uint64_t MoreOf(const JobSpec& job) {
  std::uint64_t count = 0;
  model::ForEachJobField<IsLast>(
      [&](const auto& field) { count += model::States(job, field) ? 1 : 0; });
  return count;
}

// -------------------------------------------------------------------------------------- actions

bool HasMore(const Grant& grant) {
  return grant.sharing != Sharing::kExclusive || !grant.group.empty() || !grant.running ||
         std::any_of(grant.slices.begin(), grant.slices.end(), [](const Slice& slice) {
           return slice.soft.storage_kbps != 0 || slice.loader_workers != 0;
         });
}

void PutMore(Numbers& numbers, const Grant& grant, std::string& out) {
  numbers.MakeRoom(3, out);
  numbers += static_cast<char>(grant.sharing);
  numbers += grant.running ? '\1' : '\0';
  base::PutVarint(numbers, grant.group.size());
  for (const JobId member : grant.group) {
    numbers.MakeRoom(1, out);
    base::PutVarint(numbers, static_cast<std::uint64_t>(member));
  }
  for (const Slice& slice : grant.slices) {
    numbers.MakeRoom(2, out);
    base::PutVarint(numbers, base::ZigZag(slice.soft.storage_kbps));
    base::PutVarint(numbers, base::ZigZag(slice.loader_workers));
  }
}

void PutAction(std::string& out, const model::Action& action) {
  const bool more = HasMore(action.grant);
  Numbers numbers;
  numbers += static_cast<char>(static_cast<char>(action.kind) + (more ? kMoreGrant : 0));
  base::PutVarint(numbers, static_cast<std::uint64_t>(action.job));
  base::PutVarint(numbers, base::ZigZag(action.grant.gpus));
  base::PutVarint(numbers, action.grant.slices.size());
  for (const Slice& slice : action.grant.slices) {
    numbers.MakeRoom(4, out);
    base::PutVarint(numbers, static_cast<std::uint64_t>(slice.node));
    base::PutVarint(numbers, slice.gpus);
    base::PutVarint(numbers, base::ZigZag(slice.soft.milli_cpus));
    base::PutVarint(numbers, base::ZigZag(slice.soft.memory_mib));
  }
  numbers.MakeRoom(1, out);
  base::PutVarint(numbers, action.reason.size());
  if (!action.reason.empty()) {
    numbers.Hand(out);
    out += action.reason;
  }
  if (more) {
    PutMore(numbers, action.grant, out);
  }
  numbers.Hand(out);
}

// A new pace alone follows from the other actions.
bool IsKept(const model::Action& action) { return action.kind != model::ActionKind::kPace; }

void PutActions(std::string& out, std::span<const model::Action> actions) {
  base::PutVarint(
      out, static_cast<std::uint64_t>(std::count_if(actions.begin(), actions.end(), IsKept)));
  for (const model::Action& action : actions) {
    if (IsKept(action)) {
      PutAction(out, action);
    }
  }
}

// Reads what the Put functions write; `good` turns false at the first thing that cannot be.
struct Decoder {
  std::string_view rest;
  bool good = true;

  std::uint64_t Unsigned() {
    const std::optional<std::uint64_t> value = base::TakeVarint(rest);
    good = good && value.has_value();
    return value.value_or(0);
  }
  std::int64_t Signed() { return base::UnZigZag(Unsigned()); }
  char Byte() {
    if (rest.empty()) {
      good = false;
      return 0;
    }
    const char byte = rest.front();
    rest.remove_prefix(1);
    return byte;
  }
  std::string Text() {
    const std::uint64_t size = Unsigned();
    if (size > rest.size()) {
      good = false;
      return {};
    }
    std::string text(rest.substr(0, size));
    rest.remove_prefix(size);
    return text;
  }
  TimePoint TimeFrom(TimePoint origin) {
    std::int64_t micros = 0;
    if (__builtin_add_overflow(origin.time_since_epoch().count(), Signed(), &micros)) {
      good = false;
    }
    return TimePoint{Duration{micros}};
  }
};

// ------------------------------------------------------------------------------------- two ways

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Values to bytes or back, by one function for both ways: what is written is what is read.
class Bytes {
 public:
  explicit Bytes(std::string& out) : out_(&out) {}
  explicit Bytes(Decoder& in) : in_(&in) {}

  // The fields up to kLastPlace; `at` gives the place of a field's value.
  template <typename At>
  void Fields(int& flags, At at) {
    ForEachByPlace([&](const auto& field) {
      if (field.info.journal.place == kFlagsPlace) {
        Byte(flags);
      } else if (IsThere(field.info, flags)) {
        Field(field.info, at(field));
      }
    });
  }

  template <typename T>
  void Field(const model::JobFieldInfo& info, T& value) {
    if constexpr (kIsOptional<T>) {
      int has_value = value.has_value() || in_ != nullptr ? 1 : 0;
      if ((info.journal.flag < 0 || info.journal.flag == kTraitsFlag) &&
          info.journal.place <= kLastPlace) {
        Byte(has_value);  // else the flag or the place have said so
      }
      if (has_value != 0) {
        Value(in_ != nullptr ? value.emplace() : *value);
      }
    } else {
      Value(value);
    }
  }

  void Byte(int& value) {
    if (in_ != nullptr) {
      value = static_cast<unsigned char>(in_->Byte());
    } else {
      *out_ += static_cast<char>(value);
    }
  }
  void Value(std::uint64_t& value) {
    if (in_ != nullptr) {
      value = in_->Unsigned();
    } else {
      base::PutVarint(*out_, value);
    }
  }
  template <std::signed_integral T>
  void Value(T& value) {
    if (in_ != nullptr) {
      value = static_cast<T>(in_->Signed());
    } else {
      base::PutVarint(*out_, base::ZigZag(value));
    }
  }
  void Value(bool& value) {
    int byte = value ? 1 : 0;
    Byte(byte);
    Take(value, byte != 0);
  }
  void Value(double& value) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    Value(bits);
    Take(value, std::bit_cast<double>(bits));
  }
  void Value(Duration& value) {
    Duration::rep micros = value.count();
    Value(micros);
    Take(value, Duration{micros});
  }
  void Value(TimePoint& value) {
    Duration since = value.time_since_epoch();
    Value(since);
    Take(value, TimePoint{since});
  }
  void Value(NodeId& value) {
    auto number = static_cast<std::uint64_t>(value);
    Value(number);
    Take(value, static_cast<NodeId>(number));
  }
  void Value(std::string& value) {
    if (in_ != nullptr) {
      value = in_->Text();
    } else {
      PutText(*out_, value);
    }
  }
  template <typename T>
  void Value(std::vector<T>& values) {
    std::uint64_t size = values.size();
    Value(size);
    for (std::uint64_t i = 0; i < size && (in_ == nullptr || in_->good); ++i) {
      Value(in_ != nullptr ? values.emplace_back() : values[i]);
    }
  }
  void Value(Per& value) {
    int byte = static_cast<int>(value);
    Byte(byte);
    Take(value, static_cast<Per>(byte));
    if (in_ != nullptr) {
      in_->good = in_->good && byte <= static_cast<int>(Per::kGpu);
    }
  }
  void Value(CpuRequest& value) {
    Value(value.milli);
    Value(value.per);
  }
  void Value(MemoryRequest& value) {
    Value(value.mib);
    Value(value.per);
  }
  void Value(TmpRequest& value) { Value(value.mib); }
  void Value(NodeCount& value) {
    Value(value.least);
    Value(value.most);
  }
  void Value(StageTimes& value) {
    Value(value.iteration);
    Value(value.stages);
  }
  void Value(SoftDeadline& value) {
    Value(value.at);
    Value(value.value);
  }
  void Value(Slice& value) {
    Value(value.node);
    Value(value.gpus);
  }
  void Value(DataSet& value) {
    Value(value.name);
    Value(value.mib);
    Value(value.home);
    if (in_ != nullptr) {
      in_->good = in_->good && value.mib > 0 && value.mib <= model::kMostDataMib;
    }
  }

  void Value(std::shared_ptr<const model::NodeData>& value) {
    model::NodeData data = in_ == nullptr ? *value : model::NodeData{};
    Value(data.cache_mib);
    Value(data.rate_kbps);
    Value(data.held);
    if (in_ != nullptr) {
      in_->good = in_->good && data.cache_mib >= 0 && data.rate_kbps >= 0;
      value = std::make_shared<const model::NodeData>(std::move(data));
    }
  }
  void Value(Metric& value) {
    Value(value.name);
    Value(value.value);
  }

 private:
  // What is written is not touched: others read it at the same time.
  template <typename T>
  void Take(T& value, T read) const {
    if (in_ != nullptr) {
      value = read;
    }
  }

  std::string* out_ = nullptr;
  Decoder* in_ = nullptr;  // null: to bytes
};

void PutJob(std::string& out, const JobSpec& job) {
  Bytes bytes(out);
  const auto at = [&job]<typename Owner, typename T>(const model::JobField<Owner, T>& field) -> T& {
    return const_cast<T&>(model::ValueOf(field, job));  // NOLINT: it is only read
  };
  int flags = FlagsOf(job);
  bytes.Fields(flags, at);
  if (const std::uint64_t more = MoreOf(job); more > 0) {
    base::PutVarint(out, more);
    model::ForEachJobField<IsLast>([&](const auto& field) {
      if (model::States(job, field)) {
        base::PutVarint(out, static_cast<std::uint64_t>(field.info.journal.place));
        bytes.Field(field.info, at(field));
      }
    });
  }
}

// `more`: there are fields behind kLastPlace.
JobSpec GetJob(Decoder& in, bool more) {
  model::JobDraft draft;
  Bytes bytes(in);
  int flags = 0;
  bytes.Fields(
      flags, [&draft](const auto& field) -> auto& { return draft.At(field); });
  draft.spec.best_effort = (flags & 1) != 0;
  in.good = in.good && ((flags >> kTraitsFlag & 1) != 0 || flags >> kTraitsFlag == 0);
  for (std::uint64_t left = more ? in.Unsigned() : 0; left > 0 && in.good; --left) {
    const std::uint64_t place = in.Unsigned();
    bool known = false;
    model::ForEachJobField<IsLast>([&](const auto& field) {
      if (static_cast<std::uint64_t>(field.info.journal.place) == place) {
        known = true;
        bytes.Field(field.info, draft.At(field));
      }
    });
    in.good = in.good && known;
  }
  return std::move(draft).Take();
}

// ------------------------------------------------------------------------------------------ facts

// What a fact says besides its kind, time, job and node: by one function for both ways.
template <typename T>
requires model::fact::WithSpec<T>
void Details(Bytes& /*bytes*/, T& /*fact*/) {}  // PutJob and GetJob do it
void Details(Bytes& bytes, model::fact::Progress& fact) { bytes.Value(fact.work_done); }
void Details(Bytes& bytes, model::fact::Overrun& fact) { bytes.Value(fact.work_done); }
void Details(Bytes& bytes, model::fact::Resized& fact) { bytes.Value(fact.gpus); }
void Details(Bytes& bytes, model::fact::Failed& fact) { bytes.Value(fact.exit_code); }
void Details(Bytes& bytes, model::fact::GpusLost& fact) { bytes.Value(fact.exit_code); }
void Details(Bytes& bytes, model::fact::Reported& fact) { bytes.Value(fact.metrics); }
void Details(Bytes& bytes, model::fact::Noted& fact) { bytes.Value(fact.bytes); }
void Details(Bytes& bytes, model::fact::Configured& fact) { bytes.Value(fact.note); }
void Details(Bytes& bytes, model::fact::NodeCordoned& fact) { bytes.Value(fact.until); }
void Details(Bytes& bytes, model::fact::Switched& fact) {
  bytes.Value(fact.paused);
  bytes.Value(fact.closed);
  bytes.Value(fact.by);
  bytes.Value(fact.reason);
}
void Details(Bytes& bytes, model::fact::Upgraded& fact) {
  bytes.Value(fact.from);
  bytes.Value(fact.to);
}
void Details(Bytes& bytes, model::fact::Held& fact) { bytes.Value(fact.held); }
void Details(Bytes& bytes, model::fact::Requeued& fact) { bytes.Value(fact.held); }
void Details(Bytes& bytes, model::fact::DataKept& fact) { bytes.Value(fact.data); }
void Details(Bytes& bytes, model::fact::Barred& fact) {
  bytes.Value(fact.held);
  bytes.Value(fact.nodes);
}
void Details(Bytes& bytes, model::fact::Measured& fact) {
  bytes.Value(fact.gpus);
  bytes.Value(fact.gpu_type);
  bytes.Value(fact.metrics);
}
void Details(Bytes& /*bytes*/, model::fact::Ended& /*fact*/) {}
void Details(Bytes& /*bytes*/, model::fact::Cancelled& /*fact*/) {}
void Details(Bytes& /*bytes*/, model::fact::NodeDown& /*fact*/) {}
void Details(Bytes& /*bytes*/, model::fact::NodeUp& /*fact*/) {}
void Details(Bytes& /*bytes*/, model::fact::NodeDrained& /*fact*/) {}
void Details(Bytes& /*bytes*/, model::fact::NodeUndrained& /*fact*/) {}
void Details(Bytes& /*bytes*/, model::fact::NoMoreSubmits& /*fact*/) {}

// The further jobs of a fact, each as its distance from the one before.
void PutOthers(std::string& out, JobId first, std::span<const JobId> others) {
  base::PutVarint(out, others.size());
  auto before = static_cast<std::uint64_t>(first);
  for (const JobId job : others) {
    base::PutVarint(out, static_cast<std::uint64_t>(job) - before);
    before = static_cast<std::uint64_t>(job);
  }
}

std::vector<JobId> GetOthers(Decoder& in, JobId first) {
  std::vector<JobId> others;
  auto job = static_cast<std::uint64_t>(first);
  for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
    const std::uint64_t distance = in.Unsigned();
    in.good = in.good && job + distance > job;
    job += distance;
    others.push_back(static_cast<JobId>(job));
  }
  return others;
}

void PutEvent(std::string& out, const model::Event& event, TimePoint now) {
  const std::shared_ptr<const JobSpec> spec = event.spec();
  const bool more = spec != nullptr ? MoreOf(*spec) > 0 : !event.others().empty();
  out += static_cast<char>(static_cast<char>(event.kind()) + (more ? kMoreJob : 0));
  base::PutVarint(out, base::ZigZag((event.at - now).count()));
  base::PutVarint(out, static_cast<std::uint64_t>(event.job()));
  base::PutVarint(out, static_cast<std::uint64_t>(event.node()));
  if (spec != nullptr) {
    return PutJob(out, *spec);
  }
  Bytes bytes(out);
  std::visit([&bytes](auto& fact) { Details(bytes, fact); },
             const_cast<model::Fact&>(event.fact));  // NOLINT: it is only read
  if (more) {
    PutOthers(out, event.job(), event.others());
  }
}

// The rest of a fact of that kind. `more`: a specification has fields behind kLastPlace, or there
// are further jobs.
template <typename T>
void GetFact(Decoder& in, T& fact, bool more) {
  constexpr bool kHasSpec = model::fact::WithSpec<T>;
  constexpr bool kOfSeveral = model::fact::OfSeveral<T>;
  const std::uint64_t job = in.Unsigned();
  const std::uint64_t node = in.Unsigned();
  in.good = in.good && (!more || kHasSpec || kOfSeveral);
  if constexpr (model::fact::OfJob<T>) {
    fact.job = static_cast<JobId>(job);
  } else {
    in.good = in.good && job == 0;
  }
  if constexpr (model::fact::OfNode<T>) {
    fact.node = static_cast<NodeId>(node);
  } else {
    in.good = in.good && node == 0;
  }
  if constexpr (kHasSpec) {
    fact.spec = std::make_shared<const JobSpec>(GetJob(in, more));
  } else {
    Bytes bytes(in);
    Details(bytes, fact);
  }
  if constexpr (kOfSeveral) {
    if (more) {
      fact.others = GetOthers(in, fact.job);
    }
  }
}

// A fact of each kind, as it is made.
template <std::size_t... kAt>
std::array<model::Fact, sizeof...(kAt)> NewFacts(std::index_sequence<kAt...> /*all*/) {
  return {model::Fact(std::in_place_index<kAt>)...};
}

model::Event GetEvent(Decoder& in, TimePoint now) {
  static const auto kNew = NewFacts(std::make_index_sequence<model::kEventKinds>());
  auto kind = static_cast<std::size_t>(static_cast<unsigned char>(in.Byte()));
  const bool more = kind >= kMoreJob;
  kind -= more ? kMoreJob : 0;
  in.good = in.good && kind < model::kEventKinds;
  model::Event event{.at = in.TimeFrom(now)};
  if (in.good) {
    event.fact = kNew[kind];
    std::visit([&](auto& fact) { GetFact(in, fact, more); }, event.fact);
  }
  return event;
}

// --------------------------------------------------------------------------------- actions, read

void GetMore(Decoder& in, Grant& grant) {
  grant.sharing = static_cast<Sharing>(in.Byte());
  in.good = in.good && grant.sharing <= Sharing::kCollocated;
  grant.running = in.Byte() != 0;
  for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
    grant.group.push_back(static_cast<JobId>(in.Unsigned()));
  }
  for (Slice& slice : grant.slices) {
    slice.soft.storage_kbps = in.Signed();
    slice.loader_workers = static_cast<int>(in.Signed());
  }
}

model::Action GetAction(Decoder& in) {
  const char byte = in.Byte();
  const bool more = (byte & kMoreGrant) != 0;
  model::Action action;
  action.kind = static_cast<model::ActionKind>(byte & ~kMoreGrant);
  in.good = in.good && action.kind < model::ActionKind::kPace;
  action.job = static_cast<JobId>(in.Unsigned());
  action.grant.gpus = static_cast<int>(in.Signed());
  for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
    Slice slice{.node = static_cast<NodeId>(in.Unsigned()), .gpus = in.Unsigned()};
    slice.soft.milli_cpus = in.Signed();
    slice.soft.memory_mib = in.Signed();
    action.grant.slices.push_back(slice);
  }
  action.reason = in.Text();
  if (more) {
    GetMore(in, action.grant);
  }
  return action;
}

std::vector<model::Action> GetActions(Decoder& in) {
  std::vector<model::Action> actions;
  for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
    actions.push_back(GetAction(in));
  }
  return actions;
}

// The rest of a batch of facts, and that actions follow.
model::Batch GetBatch(Decoder& in, TimePoint last) {
  in.good = in.good && in.Byte() == kBatchRecord;
  model::Batch batch{.now = in.TimeFrom(last)};
  const std::uint64_t count = in.Unsigned();
  for (std::uint64_t i = 0; i < count && in.good; ++i) {
    batch.events.push_back(GetEvent(in, batch.now));
  }
  in.good = in.good && in.Byte() == kActionsRecord;
  return batch;
}

}  // namespace

std::string EncodeActions(std::span<const model::Action> actions) {
  std::string out;
  PutActions(out, actions);
  return out;
}

void Journal::Append(const model::Batch& batch) {
  buffer_ += kBatchRecord;
  base::PutVarint(buffer_, base::ZigZag((batch.now - last_).count()));
  last_ = batch.now;
  base::PutVarint(buffer_, batch.events.size());
  for (const model::Event& event : batch.events) {
    PutEvent(buffer_, event, batch.now);
  }
}

void Journal::Append(std::span<const model::Action> actions) {
  buffer_ += kActionsRecord;
  PutActions(buffer_, actions);
}

Status Journal::Commit() {
  return write_ == Write::kEveryStep || buffer_.size() >= kBlock ? Flush() : Status();
}

Status Journal::Flush() {
  sha256_.Update(buffer_);
  Status status = sink_ ? sink_(buffer_) : Status();
  buffer_.clear();
  return status;
}

std::size_t UpgradedAt(std::string_view records) {
  Decoder in{records};
  std::size_t at = 0;
  while (in.good && !in.rest.empty()) {
    const std::size_t begin = records.size() - in.rest.size();
    const model::Batch batch = GetBatch(in, {});
    const bool upgraded = std::any_of(
        batch.events.begin(), batch.events.end(),
        [](const model::Event& event) { return event.kind() == model::EventKind::kUpgraded; });
    at = upgraded ? begin : at;
    (void)GetActions(in);
  }
  return at;
}

model::Batch ReplayWorld::Next(std::optional<TimePoint> /*wake_at*/) {
  if (rest_.empty() || !status_.ok()) {
    return {.now = last_, .done = true};
  }
  const bool follows = rest_.size() > decided_here_;
  Decoder in{rest_};
  model::Batch batch = GetBatch(in, last_);
  last_ = batch.now;
  if (in.good) {
    rest_ = in.rest;
    if (follows) {
      batch.decided = GetActions(in);
    }
  }
  if (!in.good) {
    status_ = BadInput("the journal is damaged; expected a batch of facts and its actions");
    return {.now = last_, .done = true};
  }
  return batch;
}

Status ReplayWorld::Perform(TimePoint now, std::span<const model::Action> actions) {
  const std::string bytes = EncodeActions(actions);
  if (rest_.substr(0, bytes.size()) != bytes) {
    Decoder in{rest_};
    difference_ = {.recorded = GetActions(in), .decided = {actions.begin(), actions.end()}};
    return Failed("the replay differs from the journal at " + std::to_string(Seconds(now)) + " s");
  }
  rest_.remove_prefix(bytes.size());
  return {};
}

}  // namespace trainyard::engine
