// SPDX-License-Identifier: Apache-2.0
// What `trainyard profile` prints and draws.
#pragma once

#include <string>
#include <vector>

#include "loader/fit.h"
#include "profiler/overhead.h"
#include "profiler/sensitivity.h"
#include "profiler/stages.h"
#include "profiler/throughput.h"
#include "trainyard/status.h"

namespace trainyard::cli {

struct ProfileTarget {
  std::string folder;
  std::string model;
  bool json = false;
};

// Each prints a table, or JSON, on standard output and draws FOLDER/VERB-MODEL.svg. Errors: a file
// cannot be written, gnuplot fails.
[[nodiscard]] Status ShowThroughput(const ProfileTarget& target,
                                    const std::vector<profiler::ThroughputCell>& cells);
[[nodiscard]] Status ShowStages(const ProfileTarget& target,
                                const std::vector<profiler::StageRow>& rows);
[[nodiscard]] Status ShowOverhead(const ProfileTarget& target,
                                  const std::vector<profiler::ChangeTimes>& changes);
struct SavedRuns {
  double runs_saved = 0;  // against the full grid of CPUs
  double minutes_saved = 0;
  int gpus = 1;
};
[[nodiscard]] Status ShowSensitivity(const ProfileTarget& target, const profiler::CpuCurve& curve,
                                     const SavedRuns& saved);
[[nodiscard]] Status ShowLoader(const ProfileTarget& target,
                                const std::vector<loader::MeasuredRun>& runs,
                                const loader::LoaderFit& fit);

}  // namespace trainyard::cli
