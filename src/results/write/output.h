// SPDX-License-Identifier: Apache-2.0
// The files that a run leaves: jobs.csv, timeline.csv and summary.json, as described in
// docs/formats/run-output.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/metrics/run_result.h"
#include "trainyard/status.h"

namespace trainyard::results {

// The columns of jobs.csv (with end_time_original behind where ends are registered), timeline.csv
// (with gpus_fragmented where allocations are recorded) and allocations.csv.
inline constexpr std::string_view kJobColumns =
    "job_id,user,queue,model,gpus_requested,submit_time,start_time,end_time,jct,queueing_delay,"
    "attained_service,preemptions,migrations,resizes,deadline,deadline_met,outcome,waiting_time,"
    "productive_time,overhead_time,useful_service,jct_alone";
inline constexpr std::string_view kTimelineColumns =
    "time,gpus_used,jobs_running,jobs_pending,gpus_up";
inline constexpr std::string_view kAllocationColumns = "row,job_id,node,gpus,start_time,end_time";

// With all directories above it. A program calls it before a long run, to fail early. Errors: a
// part of the path is a file, or the place is not writable.
[[nodiscard]] Status MakeOutputDirectory(const std::string& directory);

// Makes the directory and replaces files of those names in it. On failure the files that were
// there before remain and no half file is left.
[[nodiscard]] Status WriteRun(const RunResult& run, const std::string& directory);

// What WriteRun may write there; none where no directory is named.
[[nodiscard]] std::vector<std::string> FilesOfRun(const std::string& directory);

}  // namespace trainyard::results
