// SPDX-License-Identifier: Apache-2.0
// What a live world is told when it is made, and where it says what it has to say.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "live/failures/failure_book.h"
#include "trainyard/component.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::live {

class AuditTrail;  // history/audit_trail.h
struct Notice;     // notices/notices.h

// How running jobs are measured, in real time.
struct MeasureRules {
  // The time over which iterations are counted first; each window is twice as long as the one
  // before. A third of it passes before, which does not count. Zero: nothing is measured.
  Duration first_window = std::chrono::seconds(15);
  Duration longest_window = std::chrono::hours(1);
};

struct LiveOptions {
  Duration heartbeat = std::chrono::seconds(5);
  // Without contact for this long, an agent stops its attempts, which takes a grace period at most.
  Duration lease = std::chrono::seconds(60);
  Duration grace = std::chrono::seconds(30);  // of jobs that state none; also the longest of all
  Duration margin = std::chrono::seconds(5);  // clocks and messages may be off by so much
  FailureRules failures{};                    // in real time
  MeasureRules measuring{};
  Duration default_duration = std::chrono::hours(1);  // the estimate for jobs that state no work
  std::size_t max_live_jobs = 100'000;
  // Agents of nodes that the cluster does not have may join until it has so many; 0: none may.
  std::size_t open_nodes = 0;
  double unix_zero = 0;     // seconds since 1970 at the engine's zero
  double time_scale = 1;    // engine seconds per real second
  std::uint64_t epoch = 0;  // of this controller
  // Calls without a caller are refused. False: authentication is off; every call is allowed.
  bool asks_who = false;
  bool shows_all_jobs = false;  // users see one another's jobs

  // Signs that the attempt may run on the node as its owner (launcher/credential.h). Empty text:
  // there is no such user. May be empty.
  std::function<std::string(const v1::StartAttempt& start, const std::string& node)> credential{};
  // The same for what somebody starts beside the job's workers.
  std::function<std::string(const v1::AttachOrder& order, const v1::Caller& owner,
                            const std::string& node)>
      attach_credential{};
  // What only the nodes of the attempt are told, the same whenever it is asked for. May be empty.
  std::function<std::string(const v1::AttemptId& id)> secret{};
  // Told what users have asked to be told, once it is in the journal, and again by a controller
  // that goes through its journal. May be empty.
  std::function<void(const Notice& notice)> notice{};
  bool takes_notices = false;  // they go somewhere
  // Told of each change that somebody has made by a call (what, of what, who), once it is in the
  // journal. May be empty.
  std::function<void(const std::string& line)> log{};

  // Where it is kept who has done what; null: nowhere. Must outlive the world.
  AuditTrail* audit = nullptr;

  // A real time in the engine's.
  [[nodiscard]] Duration Scaled(Duration real) const {
    return Duration{static_cast<std::int64_t>(Micros(real) * time_scale)};
  }
  // The rules for failures, in the engine's time.
  [[nodiscard]] FailureRules ScaledFailures() const {
    FailureRules rules = failures;
    for (Duration* time : {&rules.soon, &rules.window, &rules.first_pause, &rules.longest_pause}) {
      *time = Scaled(*time);
    }
    return rules;
  }
  // What the job has from its notice to its end, in real time.
  [[nodiscard]] Duration GraceOf(const v1::JobRequest& job) const;
  // A time of the engine in seconds since 1970.
  [[nodiscard]] double UnixSeconds(TimePoint time) const {
    return unix_zero + Seconds(time) / time_scale;
  }
};

// What the world has to say. The receiver ignores numbers of calls and connections that are gone.
class LiveOutput {
 public:
  virtual ~LiveOutput() = default;
  virtual void Reply(std::uint64_t call, v1::ClientReply reply) = 0;
  virtual void Send(std::uint64_t connection, v1::ControllerMessage message) = 0;
  virtual void Close(std::uint64_t connection) = 0;
};

// As messages count it.
[[nodiscard]] constexpr std::int64_t Milliseconds(Duration duration) {
  return duration.count() / 1000;
}

// And back, from 0 to a hundred years, whatever the message says.
[[nodiscard]] constexpr Duration FromMilliseconds(std::int64_t count) {
  constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 365 * 100);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(count, 0, kMost.count()));
}

inline Duration LiveOptions::GraceOf(const v1::JobRequest& job) const {
  const Duration own = FromMilliseconds(job.launch().grace());
  return own.count() > 0 ? std::min(own, grace) : grace;
}

}  // namespace trainyard::live
