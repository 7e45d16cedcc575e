// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace trainyard::cli {
namespace {

constexpr std::chrono::milliseconds kBarEvery{100};
constexpr std::chrono::seconds kLineEvery{10};
constexpr std::size_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string label, std::string what, std::size_t calls_per_look)
    : label_(std::move(label)),
      what_(std::move(what)),
      calls_per_look_(calls_per_look),
      terminal_(isatty(STDERR_FILENO) != 0) {
  next_ = start_ + (terminal_ ? Clock::duration(5 * kBarEvery) : Clock::duration(kLineEvery));
}

ProgressBar::~ProgressBar() {
  if (drawn_ && terminal_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

void ProgressBar::Show(std::size_t done, std::size_t all, const std::string& note) {
  // Reading the clock costs more than counting.
  if (++calls_ % calls_per_look_ != 0) {
    return;
  }
  const Clock::time_point now = Clock::now();
  if (now >= next_) {
    next_ = now + (terminal_ ? Clock::duration(kBarEvery) : Clock::duration(kLineEvery));
    Draw(done, all, note);
  }
}

void ProgressBar::Draw(std::size_t done, std::size_t all, const std::string& note) {
  drawn_ = true;
  const double share = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
  if (!terminal_) {
    fmt::print(stderr, "{}: {} of {} {} ({:.0f} %){}\n", label_, done, all, what_, share * 100,
               note);
    return;
  }
  const auto filled = static_cast<std::size_t>(share * kWidth);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {:.0f} %, {:.0f} s left{}", label_,
             std::string(filled, '#'), std::string(kWidth - filled, '.'), share * 100,
             share > 0 ? seconds * (1 - share) / share : 0, note);
  std::fflush(stderr);
}

}  // namespace trainyard::cli
