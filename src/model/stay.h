// SPDX-License-Identifier: Apache-2.0
// How long a running job stays before it may be a victim.
#pragma once

#include <algorithm>

#include "model/job_record.h"

namespace trainyard::model {

// What is left at `now` of JobRecord::stay: it is trained off, once the debt is paid. REQUIRES: the
// job has GPUs.
[[nodiscard]] inline Duration StayLeft(const JobRecord& job, TimePoint now) {
  const Progress& progress = job.progress;
  const Duration since =
      job.grant.running ? std::max(Duration{0}, now - progress.as_of) : Duration{0};
  const Duration trained = progress.productive_time - job.productive_before_attempt;
  return std::max(Duration{0}, progress.debt + job.stay - trained - since);
}

}  // namespace trainyard::model
