// SPDX-License-Identifier: Apache-2.0
#include "supervisor/use_meter.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

#include "cgroup/group.h"
#include "supervisor/process_table.h"

namespace trainyard::supervisor {
namespace {

constexpr std::int64_t kMicros = 1'000'000;

std::int64_t MicrosOf(const timeval& time) { return time.tv_sec * kMicros + time.tv_usec; }

}  // namespace

void UseMeter::LookIfDue(Clock::time_point now) {
  if (now < next_look_) {
    return;
  }
  Look();
  pause_ = std::min(pause_ * 2, kLongestPause);
  next_look_ = now + pause_;
}

void UseMeter::Look() {
  constexpr std::int64_t kKib = 1024;
  rusage ended{};
  getrusage(RUSAGE_CHILDREN, &ended);
  std::int64_t ticks = 0;
  std::int64_t pages = 0;
  for (const Process& process : DescendantsOf(getpid())) {
    ticks += static_cast<std::int64_t>(process.cpu_ticks);
    pages += static_cast<std::int64_t>(process.resident_pages);
  }
  const std::int64_t micros = MicrosOf(ended.ru_utime) + MicrosOf(ended.ru_stime) +
                              ticks * (kMicros / sysconf(_SC_CLK_TCK));
  const std::int64_t bytes =
      grouped_ ? cgroup::MemoryAroundMe().most
               : std::max<std::int64_t>(pages * sysconf(_SC_PAGESIZE), ended.ru_maxrss * kKib);
  use_.set_cpu_micros(std::max(use_.cpu_micros(), micros));
  use_.set_peak_memory(std::max(use_.peak_memory(), bytes));
}

}  // namespace trainyard::supervisor
