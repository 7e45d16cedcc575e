// SPDX-License-Identifier: Apache-2.0
// A controller as a running thing: the state machine with a clock, a disk and a network.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/mailbox.h"
#include "live/controller.h"
#include "scenario/preset.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

class Reloads;

struct ControllerOptions {
  std::string state;  // folder; made if need be
  std::string listen = "127.0.0.1:7077";
  std::string cluster;   // file, or NODESxGPUS
  std::string profiles;  // empty: none
  // What is taken for measured at the first start; the state has it from then on. Empty: nothing.
  std::string measured;
  scenario::PresetRequest names;
  // Whom it serves, and who may do more (identity::AuthorityOptions).
  bool all_users = false;
  std::vector<std::string> operators{};
  std::vector<std::string> admins{};
  // Where tokens are handed out: a path, or '@' and a name; empty: the one that belongs to the
  // port.
  std::string socket{};
  bool tls = false;        // on loopback, too
  double user_calls = 50;  // per second, of each user who is neither operator nor admin; 0: any
  std::optional<std::string> munge{};
  Duration certificate_life = std::chrono::hours(24 * 30);
  // Of the live world, but for what the controller itself sets: zero, epoch, that callers are asked
  // who they are, credentials and where notices and lines go.
  live::LiveOptions live{};
  // Where notices go that users ask for: a program, or an address that takes a POST. Empty:
  // nowhere.
  std::string notify_program{};
  std::string notify_url{};
  live::SnapshotRules snapshots{};  // the interval in real time
  // Told, line by line, where the controller begins, what is wrong with snapshots, whom it refuses
  // and, with `logs_changes`, who has changed what. May be empty.
  std::function<void(const std::string&)> log{};
  bool logs_changes = true;
  // Whence other options come while it runs; null: none do. Must outlive the controller.
  Reloads* reloads = nullptr;
};

// Everything that can be wrong with the options but the state folder, without starting anything.
[[nodiscard]] Status CheckController(const ControllerOptions& options);

// Goes through a copy of the state with this program and these options, and says by
// `options.log` whether all that is written would be decided again, and what the start would change
// of the configuration. Nothing is written to the state. Errors: there is none, or a controller
// uses it; the first decision that would be another one.
[[nodiscard]] Status RehearseController(const ControllerOptions& options);

// What a controller begins with.
struct Ready {
  int port = 0;
  std::string policy{};  // in force, as are nodes and GPUs
  std::size_t nodes = 0;
  int gpus = 0;
};

// Runs until `mailbox` is closed. `on_ready` is told once calls are answered. Errors: a
// wrong option; a state folder that cannot be used or belongs to another cluster; a disk that
// fails.
[[nodiscard]] Status RunController(const ControllerOptions& options, Mailbox& mailbox,
                                   const std::function<void(const Ready& ready)>& on_ready);

}  // namespace trainyard::daemon
