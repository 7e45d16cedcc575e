// SPDX-License-Identifier: Apache-2.0
// Other options for a controller that runs. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "daemon/controller_process.h"

namespace trainyard::daemon {

class Reloads {
 public:
  using Take = std::function<void(const ControllerOptions& options)>;

  // What a running controller takes of them: all_users, operators, admins and user_calls. One that
  // does not serve yet takes them when it does.
  void Give(ControllerOptions options) {
    const std::lock_guard lock(mutex_);
    given_ = std::move(options);
    if (take_) {
      take_(*given_);
    }
  }
  // From now on `take` is called; empty: nobody is. Waits for the call that runs, if any.
  void Serve(Take take) {
    const std::lock_guard lock(mutex_);
    take_ = std::move(take);
    if (take_ && given_) {
      take_(*given_);
    }
  }

 private:
  std::mutex mutex_;
  Take take_;
  std::optional<ControllerOptions> given_;
};

}  // namespace trainyard::daemon
