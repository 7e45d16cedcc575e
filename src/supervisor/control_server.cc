// SPDX-License-Identifier: Apache-2.0
#include "supervisor/control_server.h"

#include <utility>

namespace trainyard {
namespace {

// False: the connection is of no use any more.
bool TakeRequests(Connection& agent, std::vector<v1::SupervisorOrder>& requests) {
  const bool open = agent.Transfer();
  while (true) {
    v1::SupervisorOrder request;
    const Taken taken = TakeMessage(agent.received(), request);
    if (taken != Taken::kOne) {
      return open && taken == Taken::kNone;
    }
    requests.push_back(std::move(request));
  }
}

}  // namespace

void ControlServer::Tell(const v1::AttemptReport& report) {
  report_ = Framed(report);
  for (Connection& agent : agents_) {
    agent.Send(report_);
  }
}

void ControlServer::AddAwaited(std::vector<pollfd>& polls) const {
  polls.push_back(listener_.Awaited(agents_.size()));
  for (const Connection& agent : agents_) {
    polls.push_back(agent.Awaited());
  }
}

std::vector<v1::SupervisorOrder> ControlServer::Serve() {
  while (true) {
    Descriptor socket = listener_.Accept(agents_.size());
    if (!socket.open()) {
      break;
    }
    agents_.emplace_back(std::move(socket));
    agents_.back().Send(report_);
  }
  std::vector<v1::SupervisorOrder> requests;
  std::erase_if(agents_, [&requests](Connection& agent) { return !TakeRequests(agent, requests); });
  return requests;
}

}  // namespace trainyard
