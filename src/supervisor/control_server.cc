// SPDX-License-Identifier: Apache-2.0
#include "supervisor/control_server.h"

#include <utility>

namespace trainyard::supervisor {
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
  agents_.SendAll(report_);
}

void ControlServer::Tell(const v1::StageTurn& turn) {
  v1::AttemptReport message;
  *message.mutable_turn() = turn;
  agents_.SendAll(Framed(message));
}

void ControlServer::Tell(const v1::AttachAnswer& answer) {
  v1::AttemptReport message;
  *message.mutable_attach() = answer;
  agents_.SendAll(Framed(message));
}

std::vector<v1::SupervisorOrder> ControlServer::Serve() {
  std::vector<v1::SupervisorOrder> requests;
  agents_.Serve([this](Connection& agent) { agent.Send(report_); },
                [&requests](Connection& agent) { return TakeRequests(agent, requests); });
  return requests;
}

}  // namespace trainyard::supervisor
