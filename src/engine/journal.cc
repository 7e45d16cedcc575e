// SPDX-License-Identifier: Apache-2.0
#include "engine/journal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace trainyard {
namespace {

constexpr char kBatchRecord = 1;
constexpr char kActionsRecord = 2;
// Flags of a job.
constexpr int kBestEffort = 1;
constexpr int kHasLaunch = 2;
constexpr int kHasHandover = 4;
constexpr int kHasPriority = 8;
constexpr int kHasTraits = 16;
constexpr int kHasDataSet = 32;    // only beside kHasTraits
constexpr int kHasGpuTypes = 64;   // likewise
constexpr int kHasGpuRange = 128;  // likewise
constexpr int kAllFlags = 255;
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
    if (size_ + numbers * kLongest > bytes_.size()) {
      Hand(out);
    }
  }

 private:
  static constexpr std::size_t kLongest = 10;  // bytes of a number
  std::array<char, 14 * kLongest> bytes_;
  std::size_t size_ = 0;
};

template <typename Out>
void PutUnsigned(Out& out, std::uint64_t value) {
  while (value >= 128) {
    out += static_cast<char>((value & 127) | 128);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

template <typename Out>
void PutSigned(Out& out, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  PutUnsigned(out, (bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
}

void PutText(std::string& out, std::string_view text) {
  PutUnsigned(out, text.size());
  out += text;
}

template <typename T, typename PutValue>
void PutOptional(std::string& out, const std::optional<T>& value, PutValue put) {
  out += value ? '\1' : '\0';
  if (value) {
    put(*value);
  }
}

void PutDouble(std::string& out, double value) {
  PutUnsigned(out, std::bit_cast<std::uint64_t>(value));
}

void PutTraits(std::string& out, const JobTraits& traits) {
  PutOptional(out, traits.stages, [&out](const StageTimes& times) {
    PutDouble(out, times.iteration);
    PutUnsigned(out, times.stages.size());
    for (const double stage : times.stages) {
      PutDouble(out, stage);
    }
  });
  PutUnsigned(out, traits.deadlines.size());
  for (const SoftDeadline& deadline : traits.deadlines) {
    PutSigned(out, deadline.at.time_since_epoch().count());
    PutDouble(out, deadline.value);
  }
  PutUnsigned(out, traits.devices.size());
  for (const Slice& slice : traits.devices) {
    PutUnsigned(out, static_cast<std::uint64_t>(slice.node));
    PutUnsigned(out, slice.gpus);
  }
  PutSigned(out, traits.loader_workers);
}

int FlagsOf(const JobSpec& job) {
  return (job.best_effort ? kBestEffort : 0) | (job.launch.empty() ? 0 : kHasLaunch) |
         (job.handover ? kHasHandover : 0) | (job.priority != 0 ? kHasPriority : 0) |
         (job.traits ? kHasTraits : 0) | (job.traits && job.traits->data_set ? kHasDataSet : 0) |
         (job.traits && !job.traits->gpu_types.empty() ? kHasGpuTypes : 0) |
         (job.traits && job.traits->range != GpuRange{} ? kHasGpuRange : 0);
}

void PutDataSet(std::string& out, const DataSet& data) {
  PutText(out, data.name);
  PutSigned(out, data.mib);
  PutText(out, data.home);
}

void PutJob(std::string& out, const JobSpec& job) {
  PutText(out, job.name);
  PutText(out, job.user);
  PutText(out, job.queue);
  PutText(out, job.model);
  PutSigned(out, job.gpus);
  PutSigned(out, job.batch_size);
  PutSigned(out, job.submit.time_since_epoch().count());
  PutOptional(out, job.duration, [&out](Duration d) { PutSigned(out, d.count()); });
  PutOptional(out, job.iterations,
              [&out](double x) { PutUnsigned(out, std::bit_cast<std::uint64_t>(x)); });
  PutOptional(out, job.deadline,
              [&out](TimePoint t) { PutSigned(out, t.time_since_epoch().count()); });
  out += static_cast<char>(FlagsOf(job));
  PutSigned(out, job.profile_row);
  if (!job.launch.empty()) {
    PutText(out, job.launch);
  }
  if (job.handover) {
    PutSigned(out, job.handover->time_since_epoch().count());
  }
  if (job.priority != 0) {
    PutSigned(out, job.priority);
  }
  if (job.traits) {
    PutTraits(out, *job.traits);
    if (job.traits->data_set) {
      PutDataSet(out, *job.traits->data_set);
    }
    if (!job.traits->gpu_types.empty()) {
      PutUnsigned(out, job.traits->gpu_types.size());
      for (const std::string& type : job.traits->gpu_types) {
        PutText(out, type);
      }
    }
    if (job.traits->range != GpuRange{}) {
      PutSigned(out, job.traits->range.least);
      PutSigned(out, job.traits->range.most);
    }
  }
}

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
  PutUnsigned(numbers, grant.group.size());
  for (const JobId member : grant.group) {
    numbers.MakeRoom(1, out);
    PutUnsigned(numbers, static_cast<std::uint64_t>(member));
  }
  for (const Slice& slice : grant.slices) {
    numbers.MakeRoom(2, out);
    PutSigned(numbers, slice.soft.storage_kbps);
    PutSigned(numbers, slice.loader_workers);
  }
}

void PutAction(std::string& out, const Action& action) {
  const bool more = HasMore(action.grant);
  Numbers numbers;
  numbers += static_cast<char>(static_cast<char>(action.kind) + (more ? kMoreGrant : 0));
  PutUnsigned(numbers, static_cast<std::uint64_t>(action.job));
  PutSigned(numbers, action.grant.gpus);
  PutUnsigned(numbers, action.grant.slices.size());
  for (const Slice& slice : action.grant.slices) {
    numbers.MakeRoom(4, out);
    PutUnsigned(numbers, static_cast<std::uint64_t>(slice.node));
    PutUnsigned(numbers, slice.gpus);
    PutSigned(numbers, slice.soft.milli_cpus);
    PutSigned(numbers, slice.soft.memory_mib);
  }
  numbers.MakeRoom(1, out);
  PutUnsigned(numbers, action.reason.size());
  if (!action.reason.empty()) {
    numbers.Hand(out);
    out += action.reason;
  }
  if (more) {
    PutMore(numbers, action.grant, out);
  }
  numbers.Hand(out);
}

// Reads what the Put functions write; `good` turns false at the first thing that cannot be.
struct Decoder {
  std::string_view rest;
  bool good = true;

  std::uint64_t Unsigned() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Byte());
      value |= static_cast<std::uint64_t>(byte & 127U) << shift;
      if (byte < 128) {
        return value;
      }
    }
    good = false;
    return 0;
  }
  std::int64_t Signed() {
    const std::uint64_t bits = Unsigned();
    return static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
  }
  double Double() { return std::bit_cast<double>(Unsigned()); }
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
  TimePoint Time() { return TimeFrom(TimePoint{}); }
  TimePoint TimeFrom(TimePoint origin) {
    std::int64_t micros = 0;
    if (__builtin_add_overflow(origin.time_since_epoch().count(), Signed(), &micros)) {
      good = false;
    }
    return TimePoint{Duration{micros}};
  }
};

JobTraits GetTraits(Decoder& in) {
  JobTraits traits;
  if (in.Byte() != 0) {
    traits.stages.emplace();
    traits.stages->iteration = in.Double();
    for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
      traits.stages->stages.push_back(in.Double());
    }
  }
  for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
    const TimePoint at = in.Time();
    traits.deadlines.push_back({.at = at, .value = in.Double()});
  }
  for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
    const auto node = static_cast<NodeId>(in.Unsigned());
    traits.devices.push_back({.node = node, .gpus = in.Unsigned()});
  }
  traits.loader_workers = static_cast<int>(in.Signed());
  return traits;
}

DataSet GetDataSet(Decoder& in) {
  DataSet data;
  data.name = in.Text();
  data.mib = in.Signed();
  data.home = in.Text();
  in.good = in.good && data.mib > 0 && data.mib <= kMostDataMib;
  return data;
}

JobSpec GetJob(Decoder& in) {
  JobSpec job;
  job.name = in.Text();
  job.user = in.Text();
  job.queue = in.Text();
  job.model = in.Text();
  job.gpus = static_cast<int>(in.Signed());
  job.batch_size = in.Signed();
  job.submit = in.Time();
  if (in.Byte() != 0) {
    job.duration = Duration{in.Signed()};
  }
  if (in.Byte() != 0) {
    job.iterations = std::bit_cast<double>(in.Unsigned());
  }
  if (in.Byte() != 0) {
    job.deadline = in.Time();
  }
  const int flags = static_cast<unsigned char>(in.Byte());
  in.good =
      in.good && (flags & ~kAllFlags) == 0 &&
      ((flags & kHasTraits) != 0 || (flags & (kHasDataSet | kHasGpuTypes | kHasGpuRange)) == 0);
  job.best_effort = (flags & kBestEffort) != 0;
  job.profile_row = static_cast<std::int32_t>(in.Signed());
  if ((flags & kHasLaunch) != 0) {
    job.launch = in.Text();
  }
  if ((flags & kHasHandover) != 0) {
    job.handover = in.Time();
  }
  if ((flags & kHasPriority) != 0) {
    job.priority = static_cast<int>(in.Signed());
  }
  if ((flags & kHasTraits) != 0) {
    const auto traits = std::make_shared<JobTraits>(GetTraits(in));
    if ((flags & kHasDataSet) != 0) {
      traits->data_set = GetDataSet(in);
    }
    if ((flags & kHasGpuTypes) != 0) {
      for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
        traits->gpu_types.push_back(in.Text());
      }
    }
    if ((flags & kHasGpuRange) != 0) {
      traits->range.least = static_cast<int>(in.Signed());
      traits->range.most = static_cast<int>(in.Signed());
    }
    job.traits = traits;
  }
  return job;
}

Event GetEvent(Decoder& in, TimePoint now) {
  Event event;
  const char kind = in.Byte();
  in.good = in.good && kind >= 0 && kind <= static_cast<char>(EventKind::kBarred);
  event.kind = static_cast<EventKind>(kind);
  event.at = in.TimeFrom(now);
  event.job = static_cast<JobId>(in.Unsigned());
  event.node = static_cast<NodeId>(in.Unsigned());
  if (event.kind == EventKind::kSubmit) {
    event.spec = std::make_shared<const JobSpec>(GetJob(in));
  } else if (event.kind == EventKind::kProgress) {
    event.work_done = std::bit_cast<double>(in.Unsigned());
  } else if (event.kind == EventKind::kResize) {
    event.gpus = static_cast<int>(in.Signed());
  } else if (event.kind == EventKind::kFailed || event.kind == EventKind::kGpusLost) {
    event.exit_code = static_cast<int>(in.Signed());
  } else if (event.kind == EventKind::kReported) {
    for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
      std::string name = in.Text();
      event.metrics.push_back({.name = std::move(name), .value = in.Double()});
    }
  } else if (event.kind == EventKind::kNoted) {
    event.note = in.Text();
  } else if (event.kind == EventKind::kBarred) {
    event.held = in.Byte() != 0;
    for (std::uint64_t left = in.Unsigned(); left > 0 && in.good; --left) {
      event.barred.push_back(static_cast<NodeId>(in.Unsigned()));
    }
  }
  return event;
}

}  // namespace

std::string EncodeActions(std::span<const Action> actions) {
  std::string out;
  PutUnsigned(out, actions.size());
  for (const Action& action : actions) {
    PutAction(out, action);
  }
  return out;
}

void Journal::Append(const Batch& batch) {
  buffer_ += kBatchRecord;
  PutSigned(buffer_, (batch.now - last_).count());
  last_ = batch.now;
  PutUnsigned(buffer_, batch.events.size());
  for (const Event& event : batch.events) {
    buffer_ += static_cast<char>(event.kind);
    PutSigned(buffer_, (event.at - batch.now).count());
    PutUnsigned(buffer_, static_cast<std::uint64_t>(event.job));
    PutUnsigned(buffer_, static_cast<std::uint64_t>(event.node));
    if (event.kind == EventKind::kSubmit) {
      PutJob(buffer_, *event.spec);
    } else if (event.kind == EventKind::kProgress) {
      PutUnsigned(buffer_, std::bit_cast<std::uint64_t>(event.work_done));
    } else if (event.kind == EventKind::kResize) {
      PutSigned(buffer_, event.gpus);
    } else if (event.kind == EventKind::kFailed || event.kind == EventKind::kGpusLost) {
      PutSigned(buffer_, event.exit_code);
    } else if (event.kind == EventKind::kReported) {
      PutUnsigned(buffer_, event.metrics.size());
      for (const Metric& metric : event.metrics) {
        PutText(buffer_, metric.name);
        PutDouble(buffer_, metric.value);
      }
    } else if (event.kind == EventKind::kNoted) {
      PutText(buffer_, event.note);
    } else if (event.kind == EventKind::kBarred) {
      buffer_ += event.held ? '\1' : '\0';
      PutUnsigned(buffer_, event.barred.size());
      for (const NodeId node : event.barred) {
        PutUnsigned(buffer_, static_cast<std::uint64_t>(node));
      }
    }
  }
}

void Journal::Append(std::span<const Action> actions) {
  buffer_ += kActionsRecord;
  PutUnsigned(buffer_, actions.size());
  for (const Action& action : actions) {
    PutAction(buffer_, action);
  }
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

Batch ReplayWorld::Next(std::optional<TimePoint> /*wake_at*/) {
  if (rest_.empty() || !status_.ok()) {
    return {.now = last_, .done = true};
  }
  Decoder in{rest_};
  in.good = in.Byte() == kBatchRecord;
  Batch batch{.now = in.TimeFrom(last_)};
  last_ = batch.now;
  const std::uint64_t count = in.Unsigned();
  for (std::uint64_t i = 0; i < count && in.good; ++i) {
    batch.events.push_back(GetEvent(in, batch.now));
  }
  in.good = in.good && in.Byte() == kActionsRecord;
  if (!in.good) {
    status_ = BadInput("the journal is damaged; expected a batch of facts and its actions");
    return {.now = last_, .done = true};
  }
  rest_ = in.rest;
  return batch;
}

Status ReplayWorld::Perform(TimePoint now, std::span<const Action> actions) {
  const std::string bytes = EncodeActions(actions);
  if (rest_.substr(0, bytes.size()) != bytes) {
    return Failed("the replay differs from the journal at " + std::to_string(Seconds(now)) + " s");
  }
  rest_.remove_prefix(bytes.size());
  return {};
}

}  // namespace trainyard
