// SPDX-License-Identifier: Apache-2.0
// How often somebody may do something.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace trainyard::service {

struct Rate {
  double per_s = 0;  // 0: no limit
  double burst = 0;  // so many at once, after a pause; at least 1
};

// A token bucket for each name: `burst` tokens at first, `per_s` more each second. Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(Rate rate) : rate_(rate) {}

  struct Refusal {
    double wait_s = 0;   // after which there may be a token
    bool first = false;  // since the name got its last one
  };
  // Takes a token; none: there was one. `now_s`: of a clock that does not run backwards, in
  // seconds.
  [[nodiscard]] std::optional<Refusal> Take(const std::string& name, double now_s);
  // From now on; names that are remembered keep what they have, up to the new burst.
  void SetRate(Rate rate);
  [[nodiscard]] Rate rate() const;
  // How many names are remembered: those with less than `burst` tokens, and some more.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Bucket {
    double tokens = 0;
    double at = 0;
    bool refused = false;
  };
  [[nodiscard]] double TokensOf(const Bucket& bucket, double now_s) const;

  mutable std::mutex mutex_;
  Rate rate_;
  std::map<std::string, Bucket> buckets_;
  std::size_t clear_at_ = 1024;  // buckets: then the full ones are forgotten
};

// Seconds of the monotonic clock.
[[nodiscard]] double MonotonicSeconds();

}  // namespace trainyard::service
