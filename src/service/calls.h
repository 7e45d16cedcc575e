// SPDX-License-Identifier: Apache-2.0
// The calls of clients: one row for each. Doors and handlers are made from these rows.
#pragma once

#include <array>

#include "trainyard/live.pb.h"

namespace trainyard::service {

// What a call does.
enum class CallFamily : unsigned char {
  kNone,        // the request is empty
  kReading,     // it changes nothing, and is answered from a view
  kSubmission,  // it makes a job, or says how many GPUs one has
  kJobChange,   // it says what becomes of jobs: of one, or of a selection
  kNode,        // it says what becomes of nodes
  kController,  // it says what the controller does and leaves
  kAgent,       // an agent answers it
};

// Name in the service Cluster, name in ClientRequest and ClientReply, family.
// clang-format off
#define TRAINYARD_CLUSTER_CALLS(CALL)             \
  CALL(Submit, submit, kSubmission)               \
  CALL(Resize, resize, kSubmission)               \
  CALL(Cancel, cancel, kJobChange)                \
  CALL(Hold, hold, kJobChange)                    \
  CALL(Requeue, requeue, kJobChange)              \
  CALL(Update, update, kJobChange)                \
  CALL(Signal, signal, kJobChange)                \
  CALL(Drain, drain, kNode)                       \
  CALL(Switches, switches, kController)           \
  CALL(Configure, configure, kController)         \
  CALL(Logs, logs, kAgent)                        \
  CALL(Attach, attach, kAgent)                    \
  CALL(Jobs, jobs, kReading)                      \
  CALL(Nodes, nodes, kReading)                    \
  CALL(Profiles, profiles, kReading)              \
  CALL(Usage, usage, kReading)                    \
  CALL(Audit, audit, kReading)                    \
  CALL(Configuration, configuration, kReading)
// clang-format on

struct CallRow {
  v1::ClientRequest::KindCase kind;
  CallFamily family;
};
inline constexpr std::array kCallRows{
#define TRAINYARD_CALL(Name, field, family) CallRow{v1::ClientRequest::k##Name, CallFamily::family},
    TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
};

[[nodiscard]] constexpr CallFamily FamilyOf(v1::ClientRequest::KindCase kind) {
  for (const CallRow& row : kCallRows) {
    if (row.kind == kind) {
      return row.family;
    }
  }
  return CallFamily::kNone;
}

// Calls `visit` with what the call asks for, as its own message. Nothing where the request is
// empty.
template <typename Visit>
void VisitRequest(const v1::ClientRequest& request, Visit visit) {
  switch (request.kind_case()) {
#define TRAINYARD_CALL(Name, field, family) \
  case v1::ClientRequest::k##Name:          \
    return visit(request.field());
    TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
    case v1::ClientRequest::KIND_NOT_SET:
      return;
  }
}

// The same with what a reply says. Nothing where it is an error or empty.
template <typename Visit>
void VisitReply(const v1::ClientReply& reply, Visit visit) {
  switch (reply.kind_case()) {
#define TRAINYARD_CALL(Name, field, family) \
  case v1::ClientReply::k##Name:            \
    return visit(reply.field());
    TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
    case v1::ClientReply::kError:
    case v1::ClientReply::KIND_NOT_SET:
      return;
  }
}

// The same with the reply to a call of that kind, which is made.
template <typename Visit>
void MakeReply(v1::ClientRequest::KindCase kind, v1::ClientReply& reply, Visit visit) {
  switch (kind) {
#define TRAINYARD_CALL(Name, field, family) \
  case v1::ClientRequest::k##Name:          \
    return visit(*reply.mutable_##field());
    TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
    case v1::ClientRequest::KIND_NOT_SET:
      return;
  }
}

}  // namespace trainyard::service
