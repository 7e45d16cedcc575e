// SPDX-License-Identifier: Apache-2.0
// The job streams of the Gavel simulator (OSDI'20, section 7.1), draw by draw:
// docs/formats/gavel.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// A kind of job with its steps per second on the reference type, v100.
struct GavelKind {
  std::string model;
  std::int64_t batch_size = 0;  // 0: none is stated
  std::vector<double> rates;    // alone on 1, 2, 4 and 8 GPUs; 0: not measured
};

struct GavelOptions {
  int jobs = 0;              // >= 0
  double jobs_per_hour = 0;  // > 0, or 0: all at time 0
  std::uint64_t seed = 0;    // < 2^63
  bool multi_gpu = false;    // else every job asks for 1 GPU
  bool priorities = false;   // a fifth has the weight 5
  // The lengths of the script that writes trace files, instead of the simulator's own: so many
  // hours, evenly between two ends. The script draws from other streams, and cuts times and steps.
  struct EvenHours {
    double least = 1;
    double most = 4;
    int count = 4;  // > 0
  };
  std::optional<EvenHours> even_hours{};
};

// The kinds of a throughput table in Gavel's form, in the order of its generators. Errors: those of
// reading it; a kind of the generators is missing there.
[[nodiscard]] Result<std::vector<GavelKind>> ReadGavelKinds(const std::string& path);

// REQUIRES: the options are in the ranges given above, and `kinds` those of ReadGavelKinds.
// Errors: times beyond what a trace can hold (kInvalidArgument).
[[nodiscard]] Result<std::vector<JobSpec>> GenerateGavelTrace(const GavelOptions& options,
                                                              const std::vector<GavelKind>& kinds);

}  // namespace trainyard::trace
