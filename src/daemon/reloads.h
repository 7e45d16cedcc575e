// SPDX-License-Identifier: Apache-2.0
// Other options for a controller that runs. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "daemon/controller_process.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

class Reloads {
 public:
  // Error: they are wrong, and nothing is taken of them.
  using Take = std::function<Status(const ControllerOptions& options)>;

  // What a running controller takes of them: all_users, operators, admins, user_calls, names and
  // cluster. One that does not serve yet takes them when it does.
  [[nodiscard]] Status Give(ControllerOptions options) {
    const std::lock_guard lock(mutex_);
    given_ = std::move(options);
    return take_ ? take_(*given_) : Status();
  }
  // From now on `take` is called; empty: nobody is. Waits for the call that runs, if any.
  void Serve(Take take) {
    const std::lock_guard lock(mutex_);
    take_ = std::move(take);
    if (take_ && given_) {
      (void)take_(*given_);  // they have been read, and the next reading says what is wrong
    }
  }

 private:
  std::mutex mutex_;
  Take take_;
  std::optional<ControllerOptions> given_;
};

}  // namespace trainyard::daemon
