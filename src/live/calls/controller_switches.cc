// SPDX-License-Identifier: Apache-2.0
#include "live/calls/controller_switches.h"

#include <utility>

namespace trainyard::live {

Result<Reply> ControllerSwitches::Set(const Call& call, const v1::SwitchesRequest& request) {
  const LiveState& state = context_.state();
  if (!call.principal.MayOperate()) {
    return PermissionDenied(call.principal.text() +
                            " may not pause or close the controller; expected an operator or an "
                            "admin");
  }
  if (!request.has_paused() && !request.has_closed()) {
    return InvalidArgument("neither 'paused' nor 'closed' is set; expected one of them");
  }
  if (request.reason().size() > kMostReason) {
    return InvalidArgument("the reason has " + std::to_string(request.reason().size()) +
                           " bytes; expected at most " + std::to_string(kMostReason));
  }
  const bool was_paused = state.switches.paused.on;
  const bool was_closed = state.switches.closed.on;
  const bool paused = request.has_paused() ? request.paused() : was_paused;
  const bool closed = request.has_closed() ? request.closed() : was_closed;
  if (paused != was_paused || closed != was_closed) {
    context_.Add(model::fact::Switched{.paused = paused,
                                       .closed = closed,
                                       .by = call.principal.text_with_role(),
                                       .reason = request.reason()});
  }
  return Reply([this]() -> std::optional<v1::ClientReply> {
    v1::ClientReply reply;
    *reply.mutable_switches()->mutable_switches() =
        MessageOf(context_.state().switches, context_.state().options);
    return reply;
  });
}

}  // namespace trainyard::live
