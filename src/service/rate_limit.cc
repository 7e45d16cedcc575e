// SPDX-License-Identifier: Apache-2.0
#include "service/rate_limit.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trainyard::service {

double RateLimit::TokensOf(const Bucket& bucket, double now_s) const {
  return std::min(rate_.burst, bucket.tokens + rate_.per_s * std::max(0.0, now_s - bucket.at));
}

std::optional<RateLimit::Refusal> RateLimit::Take(const std::string& name, double now_s) {
  const std::lock_guard lock(mutex_);
  if (rate_.per_s <= 0) {
    return std::nullopt;
  }
  if (buckets_.size() >= clear_at_) {
    std::erase_if(buckets_,
                  [&](const auto& at) { return TokensOf(at.second, now_s) >= rate_.burst; });
    clear_at_ = 2 * std::max(clear_at_ / 2, buckets_.size());
  }
  Bucket& bucket = buckets_.try_emplace(name, Bucket{rate_.burst, now_s}).first->second;
  const double tokens = TokensOf(bucket, now_s);
  if (tokens < 1) {
    return Refusal{.wait_s = (1 - tokens) / rate_.per_s,
                   .first = !std::exchange(bucket.refused, true)};
  }
  bucket = {.tokens = tokens - 1, .at = now_s};
  return std::nullopt;
}

void RateLimit::SetRate(Rate rate) {
  const std::lock_guard lock(mutex_);
  rate_ = rate;
}

Rate RateLimit::rate() const {
  const std::lock_guard lock(mutex_);
  return rate_;
}

std::size_t RateLimit::size() const {
  const std::lock_guard lock(mutex_);
  return buckets_.size();
}

double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace trainyard::service
