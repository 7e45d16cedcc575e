// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "faults/world.h"

namespace trainyard::faults {

// ----------------------------------------------------------------------------------------- agents

void World::StartAgent(int node) {
  const auto n = static_cast<std::size_t>(node);
  const std::uint64_t life = ++agent_lives_[n];
  agent_clocks_[n] = wall_clocks_[n];
  v1::Hello hello;
  hello.set_node(cluster_.nodes[n].name);
  hello.set_address(cluster_.nodes[n].name);
  hello.set_gpus(options_.gpus);
  hello.set_start(std::to_string(life));
  const bool keeps_data = n + 1 < stores_.size();  // all but the last
  if (keeps_data) {
    hello.mutable_data()->set_cache_mib(PretendedStore::kRoom);
    hello.mutable_data()->set_rate_kbps(1000);
  }
  agents_[n] = std::make_unique<live::Agent>(
      std::move(hello), *processes_[n],
      [this, node, life](v1::AgentMessage message) { FromAgent(node, life, std::move(message)); },
      keeps_data ? stores_[n].get() : nullptr);
  agents_[n]->Begin();
  ConnectAgent(node);
}

void World::CrashAgent(int node) {
  const auto n = static_cast<std::size_t>(node);
  if (!agents_[n]) {
    return;
  }
  agents_[n].reset();
  processes_[n]->LoseAgent();
  stores_[n]->LoseAgent();
  if (links_[n] != 0) {
    const std::uint64_t link = std::exchange(links_[n], 0);
    Break(link, false);
  }
  if (options_.bug == PlantedBug::kStaysAway && Chance(0.3)) {
    return;
  }
  After(Chance(0.1) ? Between(seconds(60), seconds(300)) : Between(milliseconds(100), seconds(10)),
        [this, node] {
          if (!agents_[static_cast<std::size_t>(node)]) {
            StartAgent(node);
          }
        });
}

void World::ConnectAgent(int node) {
  After(Between(milliseconds(50), seconds(2)), [this, node] {
    const auto n = static_cast<std::size_t>(node);
    if (!agents_[n] || links_[n] != 0) {
      return;
    }
    if (!controller_) {
      return ConnectAgent(node);
    }
    const std::uint64_t number = ++connection_numbers_;
    connections_[number] = {.node = node,
                            .last_up = now_,
                            .last_down = now_,
                            .controller_life = controller_life_,
                            .opened = now_};
    links_[n] = number;
    agents_[n]->OnConnected(AgentTime(n));
    AgentTimer(node);
  });
}

void World::AgentTimer(int node) {
  const auto n = static_cast<std::size_t>(node);
  if (const std::optional<TimePoint> at = agents_[n]->next_timer()) {
    After(std::max(Duration{0}, *at - AgentTime(n)), [this, node, number = ++timer_numbers_[n]] {
      const auto m = static_cast<std::size_t>(node);
      if (agents_[m] && number == timer_numbers_[m]) {
        agents_[m]->OnTime(AgentTime(m));
        AgentTimer(node);
      }
    });
  }
}

void World::FromAgent(int node, std::uint64_t life, v1::AgentMessage message) {
  const auto n = static_cast<std::size_t>(node);
  const auto at = connections_.find(links_[n]);
  if (life != agent_lives_[n] || at == connections_.end() || at->second.silent) {
    return;
  }
  Connection& connection = at->second;
  const bool hello = message.has_hello();
  const auto deliver = [this, n, number = at->first, message = std::move(message)] {
    const auto to = connections_.find(number);
    if (to != connections_.end() && !to->second.silent && to->second.open_there && controller_ &&
        to->second.controller_life == controller_life_) {
      result_.coverage.Arrived(number, message, StarterOfJob(message.attempt().id().job()));
      heard_[n] = std::max(ControllerTime(), controller_->engine().now());
      controller_->world().OnAgent(number, message);
      StepSoon();
    }
  };
  if (hello) {  // the first of a connection, so that others are not for nobody
    connection.last_up = now_ + Delay();
    return After(connection.last_up - now_, deliver);
  }
  Deliver(connection.last_up, deliver);
}

}  // namespace trainyard::faults
