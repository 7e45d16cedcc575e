// SPDX-License-Identifier: Apache-2.0
// Tasks that other threads queue for the one thread of a controller or an agent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace trainyard::daemon {

class Mailbox {
 public:
  using Task = std::function<void()>;

  void Put(Task task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    ready_.notify_one();
  }

  // From then on Take does not wait.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_one();
  }

  // All queued tasks: waits until there are any, at the latest until `until`.
  [[nodiscard]] std::vector<Task> Take(std::optional<std::chrono::steady_clock::time_point> until) {
    std::unique_lock lock(mutex_);
    const auto come = [this] { return closed_ || !tasks_.empty(); };
    if (until) {
      ready_.wait_until(lock, *until, come);
    } else {
      ready_.wait(lock, come);
    }
    return std::exchange(tasks_, {});
  }

  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Task> tasks_;
  bool closed_ = false;
};

}  // namespace trainyard::daemon
