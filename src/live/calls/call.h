// SPDX-License-Identifier: Apache-2.0
// What the handlers of calls share: who calls, what they may look at, and where their facts go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "live/live_state.h"
#include "live/notes.h"
#include "live/view/view_writer.h"
#include "service/principal.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::live {

struct Call {
  std::uint64_t number = 0;  // to which the reply goes
  service::Principal principal{};
};

// Makes the reply to a call, once the journal holds the facts to which the call has led. None:
// something else replies to it, later.
using Reply = std::function<std::optional<v1::ClientReply>()>;

class CallContext {
 public:
  // Both must outlive it.
  CallContext(LiveState& state, ViewWriter& views) : state_(state), views_(views) {}
  // Where facts go, before the first call.
  void SetFacts(AddFact add) { add_ = std::move(add); }
  // A new batch of calls begins: they may ask for the jobs of earlier ones.
  void Begin() { known_jobs_ = state_.jobs.size(); }

  [[nodiscard]] LiveState& state() { return state_; }
  [[nodiscard]] const LiveState& state() const { return state_; }
  // How things stand, with the facts of this batch.
  [[nodiscard]] Statuses statuses() const { return views_.Now(); }
  [[nodiscard]] std::shared_ptr<const ClusterView> published() const { return views_.Published(); }
  // The jobs of earlier batches: the first so many.
  [[nodiscard]] std::size_t known_jobs() const { return known_jobs_; }

  // A fact; its time is now.
  void Add(model::Fact fact);
  // Who makes a change, for the journal; the note's text comes behind that. Nothing where
  // authentication is off.
  void NoteChange(const Call& call, std::string_view what, ChangeNote note);

  // The job of that number. Errors: there is none; the caller may not do that to it.
  [[nodiscard]] Result<JobId> Find(const Call& call, std::uint64_t number,
                                   service::Access access) const;
  // "it is waiting (as many GPUs are not free)"
  [[nodiscard]] std::string StateAndReasonOf(JobId job) const;

 private:
  LiveState& state_;
  ViewWriter& views_;
  AddFact add_;
  std::size_t known_jobs_ = 0;
};

// Of what operators give as a reason, in bytes.
inline constexpr std::size_t kMostReason = 200;

// The caller may not do that to the job, which the text names as "{}".
[[nodiscard]] Error NotYours(const service::Principal& principal, service::Access access);

// Tolerates clock error between retries: whether a client that says the same again may be so many
// seconds apart, which may be any number.
[[nodiscard]] bool IsClockError(const LiveOptions& options, double apart_s);

[[nodiscard]] inline Error NotFound(std::string message) {
  return {ErrorCode::kNotFound, std::move(message)};
}
[[nodiscard]] inline Error FailedPrecondition(std::string message) {
  return {ErrorCode::kFailedPrecondition, std::move(message)};
}
[[nodiscard]] inline Error PermissionDenied(std::string message) {
  return {ErrorCode::kPermissionDenied, std::move(message)};
}
[[nodiscard]] inline Error Unavailable(std::string message) {
  return {ErrorCode::kUnavailable, std::move(message)};
}

}  // namespace trainyard::live
