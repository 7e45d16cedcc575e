// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_log.h"

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "base/unix_time.h"
#include "io/descriptor.h"

namespace trainyard::supervisor {
namespace {

// Bytes: a report has all records, and has to stay a message (kMaxMessageBytes).
constexpr std::size_t kLongestName = 64;
constexpr std::size_t kLongestList = 256;

void Cut(std::string& text, std::size_t most) { text.resize(std::min(text.size(), most)); }

}  // namespace

int TakeStepNumber(const std::string& folder) {
  const std::string path = folder + "/" + kStepCount;
  constexpr mode_t kMine = 0600;
  const io::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMine));
  std::array<char, 16> text{};
  if (file.get() < 0 || flock(file.get(), LOCK_EX) != 0 ||
      pread(file.get(), text.data(), text.size() - 1, 0) < 0) {
    return 0;
  }
  const int number = base::ToInteger<int>(base::Trim(text.data())).value_or(0);
  const std::string next = std::to_string(number + 1);
  return pwrite(file.get(), next.data(), next.size(), 0) < 0 ? 0 : number;
}

void WriteStepRecord(const std::string& folder, const v1::StepRecord& record) {
  if (record.number() >= kMostSteps) {
    return;
  }
  std::ostringstream bytes;
  google::protobuf::util::SerializeDelimitedToOstream(record, &bytes);
  constexpr mode_t kMine = 0600;
  const std::string path = folder + "/" + kStepLog;
  const io::Descriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMine));
  const std::string text = bytes.str();
  // In one piece, as steps side by side write, too; and all of it or nothing, where a disk is full.
  if (file.get() < 0 || flock(file.get(), LOCK_EX) != 0) {
    return;
  }
  const off_t before = lseek(file.get(), 0, SEEK_END);
  if (write(file.get(), text.data(), text.size()) < static_cast<ssize_t>(text.size())) {
    static_cast<void>(!ftruncate(file.get(), before));
  }
}

v1::StepRecord BegunStep(const StepOptions& options, const v1::StepStart& start) {
  v1::StepRecord record;
  record.set_number(start.step());
  const std::string& program = options.command.front();
  record.set_name(options.name.empty() ? program.substr(program.rfind('/') + 1) : options.name);
  record.set_started(base::UnixNow());
  record.set_tasks(options.tasks);
  record.set_cpus(options.tasks * options.cpus_per_task);
  record.set_nodes(start.nodes());
  record.set_node_list(start.node_list());
  return record;
}

v1::StepRecord EndedStep(v1::StepRecord begun, int status) {
  begun.set_ended(base::UnixNow());
  begun.set_exit_code(status);
  return begun;
}

bool StepLog::ReadIfDue(Clock::time_point now) {
  constexpr std::chrono::seconds kPause(2);
  if (now < next_due_) {
    return false;
  }
  next_due_ = now + kPause;
  return Read();
}

bool StepLog::Read() {
  const io::Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open()) {
    return false;
  }
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;  // the rest the next time
  std::string bytes(kMostAtOnce, '\0');
  const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), read_);
  if (got <= 0) {
    return false;
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(got));
  std::int64_t whole = 0;
  v1::StepRecord record;
  // What is not whole yet is read again the next time.
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &stream, nullptr)) {
    whole = stream.ByteCount();
    Take(std::exchange(record, {}));
  }
  read_ += whole;
  return whole > 0;
}

void StepLog::Take(v1::StepRecord record) {
  if (record.number() < 0 || record.number() >= kMostSteps) {
    return;  // a job may write there what it likes
  }
  record.GetReflection()->MutableUnknownFields(&record)->Clear();
  Cut(*record.mutable_name(), kLongestName);
  Cut(*record.mutable_node_list(), kLongestList);
  const auto at =
      std::lower_bound(records_.begin(), records_.end(), record.number(),
                       [](const v1::StepRecord& one, int number) { return one.number() < number; });
  if (at != records_.end() && at->number() == record.number()) {
    // A step ends once: so many changes of an attempt get into the journal, whatever a job writes.
    if (!at->has_ended() && record.has_ended()) {
      at->set_ended(record.ended());
      at->set_exit_code(record.exit_code());
    }
    return;
  }
  const auto place = static_cast<int>(at - records_.begin());
  *records_.Add() = std::move(record);
  std::rotate(records_.begin() + place, records_.end() - 1, records_.end());
}

}  // namespace trainyard::supervisor
