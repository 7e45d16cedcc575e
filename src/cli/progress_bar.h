// SPDX-License-Identifier: Apache-2.0
// How far a run is: a bar on a terminal, plain lines elsewhere, nothing for short runs. On stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace trainyard::cli {

class ProgressBar {
 public:
  // `what`: the things that are counted, such as "jobs ended". The clock is read at one of
  // `calls_per_look` calls.
  explicit ProgressBar(std::string label, std::string what = "jobs ended",
                       std::size_t calls_per_look = 256);
  ~ProgressBar();  // clears the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `note` goes behind.
  void Show(std::size_t done, std::size_t all, const std::string& note = {});

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(std::size_t done, std::size_t all, const std::string& note);

  const std::string label_;
  const std::string what_;
  const std::size_t calls_per_look_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
  std::size_t calls_ = 0;
  bool drawn_ = false;
};

}  // namespace trainyard::cli
