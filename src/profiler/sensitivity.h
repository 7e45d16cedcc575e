// SPDX-License-Identifier: Apache-2.0
// How fast a script trains with fewer CPUs and less memory than it would like (Synergy, OSDI'22,
// section 3): CPUs are measured at as few points as it takes, memory is modelled by a cache that
// keeps a part of the data set.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiler/measurement.h"
#include "profiler/subject.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

struct SensitivityOptions {
  int gpus = 1;
  int most_cpus = 0;  // of the whole job: CPUs, or loader workers where the machine has fewer cores
  bool bind_cores = false;  // the script is bound to as many cores as it has loader workers
  double tolerance = 0.05;  // of what is interpolated, as a part of the seconds of an iteration
};

// Seconds of an iteration by CPUs of the whole job.
struct CpuCurve {
  std::map<int, Estimate> measured;
  std::map<int, double> seconds;  // for 1 to most_cpus: measured, or interpolated in 1 / CPUs
};

// Halves the range of CPUs wherever what lies in its middle cannot be told from its ends: they
// differ by less than the tolerance, or a measurement in the middle is within the tolerance of what
// is interpolated, in 1 / CPUs (loading takes a / CPUs + b). Errors: those of the measurements.
[[nodiscard]] Result<CpuCurve> MeasureCpus(const Subject& subject,
                                           const SensitivityOptions& options, Measurer& measurer);

// A cache that does not evict within an epoch (MinIO; reference 10.3). All of the whole node.
struct MemoryModel {
  double data_gb = 0;     // of the data set; 0: memory does not matter
  double samples = 0;     // of an epoch
  double disk_mbps = 0;   // of storage, MB/s
  double cache_gbps = 0;  // of memory, GB/s
};
// Seconds of an iteration of `batch` samples where `cached_gb` of the data set lie in memory and
// all else takes `seconds`; and what of the disk's bandwidth that needs, MB/s.
struct WithMemory {
  double seconds = 0;
  double disk_mbps = 0;
};
[[nodiscard]] WithMemory IterationWith(const MemoryModel& model, double seconds, double cached_gb,
                                       double batch);

// The node for whose proportional share throughputs are stated.
struct ProfiledNode {
  double cpus_per_gpu = 3;
  double memory_gb_per_gpu = 62.5;
};

// Adds to FOLDER/model_profiles.csv and throughput_matrix.csv (docs/formats/sensitivity.md).
[[nodiscard]] Status WriteSensitivity(const std::string& folder, const Subject& subject,
                                      const SensitivityOptions& options, const CpuCurve& curve,
                                      const MemoryModel& memory, const ProfiledNode& node);

}  // namespace trainyard::profiler
