// SPDX-License-Identifier: Apache-2.0
// Calls for jobs that are answered when something has changed (JobsRequest::wait): a client follows
// a cluster by one open call in place of one call a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "trainyard/live.pb.h"

namespace trainyard::daemon {

class WaitingReads {
 public:
  // The answer from the last published view, for any thread.
  using Answer = std::function<v1::ClientReply(const v1::ClientRequest& request)>;
  using Reply = std::function<void(std::uint64_t call, v1::ClientReply reply)>;

  static constexpr std::chrono::milliseconds kLongestWait{60'000};
  // Above so many waiting calls the next ones are answered at once: open calls are limited, and
  // each is looked at after a step.
  static constexpr std::size_t kMostCalls = 512;
  // Between two looks at the calls, however fast steps follow one another.
  static constexpr std::chrono::milliseconds kLeastPause{100};

  WaitingReads(Answer answer, Reply reply);
  ~WaitingReads() { Stop(); }
  WaitingReads(const WaitingReads&) = delete;
  WaitingReads& operator=(const WaitingReads&) = delete;

  // Whether the request states a wait, for a version that the client has.
  [[nodiscard]] static bool Waits(const v1::ClientRequest& request);
  // Answers at once if there is something to say, else at the first step after which there is, or
  // when the wait is over. REQUIRES: Waits(request).
  void Add(std::uint64_t call, v1::ClientRequest request);
  // The client is gone.
  void Drop(std::uint64_t call);
  // A step is over, and its view published.
  void NoteStep();
  // No call waits any longer: those that do are not answered, and further ones are at once. When it
  // returns nothing is answered by another thread than that of Add.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Call {
    v1::ClientRequest request;
    Clock::time_point until;
  };

  void Run();
  // Answers calls of which something has changed or whose wait is over.
  void Look(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Clock::time_point NextEnd() const;  // REQUIRES: mutex_ is held

  const Answer answer_;
  const Reply reply_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::map<std::uint64_t, std::shared_ptr<const Call>> calls_;
  bool stepped_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace trainyard::daemon
