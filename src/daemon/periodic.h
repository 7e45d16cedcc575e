// SPDX-License-Identifier: Apache-2.0
// A task on a thread of its own, again and again until the object goes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace trainyard::daemon {

// How often certificates are looked at: a life of theirs is at least some minutes.
inline constexpr std::chrono::seconds kLookAtCertificates{1};

class Periodic {
 public:
  Periodic(std::chrono::milliseconds pause, std::function<void()> task)
      : pause_(pause), task_(std::move(task)), thread_([this] { Run(); }) {}
  ~Periodic() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stopped_.notify_all();
    thread_.join();
  }
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, pause_, [this] { return stopping_; })) {
      lock.unlock();
      task_();
      lock.lock();
    }
  }

  const std::chrono::milliseconds pause_;
  const std::function<void()> task_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace trainyard::daemon
