// SPDX-License-Identifier: Apache-2.0
// Work that other threads leave for the one thread of a controller or an agent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace trainyard {

class Mailbox {
 public:
  using Letter = std::function<void()>;

  void Put(Letter letter) {
    {
      const std::lock_guard lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    ready_.notify_one();
  }

  // From then on Take comes back at once.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_one();
  }

  // All there are, as soon as there are any, at the latest at `until`.
  [[nodiscard]] std::vector<Letter> Take(
      std::optional<std::chrono::steady_clock::time_point> until) {
    std::unique_lock lock(mutex_);
    const auto come = [this] { return closed_ || !letters_.empty(); };
    if (until) {
      ready_.wait_until(lock, *until, come);
    } else {
      ready_.wait(lock, come);
    }
    return std::exchange(letters_, {});
  }

  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Letter> letters_;
  bool closed_ = false;
};

}  // namespace trainyard
