// SPDX-License-Identifier: Apache-2.0
// The files of a run (docs/formats/run-output.md), read back.
#pragma once

#include <string>

#include "results/metrics/run_result.h"
#include "trainyard/status.h"

namespace trainyard::results {

// The jobs of FOLDER/jobs.csv and the rules by which their ends count; nothing else of the run is
// set. A best-effort job is not known as such, but held to no deadline all the same. Errors: those
// of the table; a column is missing; a value is not of its kind, or does not follow from the others
// (JCT, queueing delay, deadline met); a job is there twice.
[[nodiscard]] Result<RunResult> ReadJobsOfRun(const std::string& folder);

// The whole run, without `choices`; its label is that of its policy. Errors
// besides: a file is missing or broken; the jobs are not as many as summary.json counts.
[[nodiscard]] Result<RunResult> ReadRun(const std::string& folder);

}  // namespace trainyard::results
