// SPDX-License-Identifier: Apache-2.0
#include "daemon/waiting_reads.h"

#include <algorithm>
#include <utility>

namespace trainyard::daemon {
namespace {

bool SaysSomething(const v1::ClientReply& reply) {
  return !reply.has_jobs() || reply.jobs().jobs_size() > 0 || reply.jobs().unknown_size() > 0;
}

}  // namespace

WaitingReads::WaitingReads(Answer answer, Reply reply)
    : answer_(std::move(answer)), reply_(std::move(reply)), thread_([this] { Run(); }) {}

void WaitingReads::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

bool WaitingReads::Waits(const v1::ClientRequest& request) {
  return request.has_jobs() && request.jobs().wait() > 0 && !request.jobs().since().empty();
}

void WaitingReads::Add(std::uint64_t number, v1::ClientRequest request) {
  v1::ClientReply reply = answer_(request);
  {
    const std::lock_guard lock(mutex_);
    if (!SaysSomething(reply) && calls_.size() < kMostCalls && !stopping_) {
      const std::chrono::milliseconds wait{request.jobs().wait()};
      calls_[number] = std::make_shared<const Call>(
          Call{std::move(request), Clock::now() + std::min(wait, kLongestWait)});
      stepped_ = true;  // there may have been a step since the answer
      woken_.notify_all();
      return;
    }
  }
  reply_(number, std::move(reply));
}

void WaitingReads::Drop(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

void WaitingReads::NoteStep() {
  const std::lock_guard lock(mutex_);
  if (!calls_.empty() && !stepped_) {
    stepped_ = true;
    woken_.notify_all();
  }
}

WaitingReads::Clock::time_point WaitingReads::NextEnd() const {
  Clock::time_point next = Clock::now() + kLongestWait;
  for (const auto& [number, call] : calls_) {
    next = std::min(next, call->until);
  }
  return next;
}

void WaitingReads::Look(std::unique_lock<std::mutex>& lock) {
  const std::map<std::uint64_t, std::shared_ptr<const Call>> calls = calls_;
  const Clock::time_point now = Clock::now();
  lock.unlock();
  for (const auto& [number, call] : calls) {
    v1::ClientReply reply = answer_(call->request);
    if (!SaysSomething(reply) && now < call->until) {
      continue;
    }
    lock.lock();
    const bool waits = calls_.erase(number) > 0;  // else its client has gone meanwhile
    lock.unlock();
    if (waits) {
      reply_(number, std::move(reply));
    }
  }
  lock.lock();
}

void WaitingReads::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_.wait_until(lock, NextEnd(), [this] { return stopping_ || stepped_; });
    if (stopping_) {
      return;
    }
    stepped_ = false;
    Look(lock);
    woken_.wait_for(lock, kLeastPause, [this] { return stopping_; });
  }
}

}  // namespace trainyard::daemon
