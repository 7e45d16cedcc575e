// SPDX-License-Identifier: Apache-2.0
// Tasks of an array that are alike as one line, for people.
#pragma once

#include <string>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard::cli {

// Jobs that share a line.
struct JobLine {
  const v1::JobStatus* job = nullptr;  // the first; never null
  std::vector<std::int64_t> tasks;     // of its array, ascending; empty: it is in none
};

// In the order of their first jobs. Tasks of one array that are in one state, held or not, share a
// line, but for those with GPUs, which are apart from each other, those that have ended with
// different exit codes, and those whose names, queues, GPUs, limits or priorities differ. The
// statuses must outlive the lines.
[[nodiscard]] std::vector<JobLine> LinesOf(const std::vector<const v1::JobStatus*>& jobs);

// "12", "12_3", "12_[3-7,9-199%50]": the last where there are several, with how many may run at a
// time while they wait. Long lists are cut.
[[nodiscard]] std::string TextOf(const JobLine& line);

// That of the first; the command that releases it is that for all held tasks of the array.
[[nodiscard]] std::string ReasonOf(const JobLine& line);

}  // namespace trainyard::cli
