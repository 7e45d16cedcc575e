// SPDX-License-Identifier: Apache-2.0
// How fast jobs advance whose loader may be slower than their GPUs.
#pragma once

#include <memory>
#include <span>

#include "loader/loader_profiles.h"
#include "trainyard/snapshot.h"

namespace trainyard::loader {

enum class WorkersFrom : unsigned char {
  kGrant,    // Slice::soft: the cores of those that somebody divides (ShareCores)
  kRequest,  // JobTraits::loader_workers; 0: as many as it takes
};

// Work is iterations: those of the GPUs, on which others may be, or those that the loader has data
// for, whichever are fewer. On the requested number of GPUs only. `profiles` must outlive the
// model. REQUIRES: every job states its iterations, and LoaderProfiles::Check succeeds.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeLoaderModel(const LoaderProfiles& profiles,
                                                              WorkersFrom from);

// Images per second of a job whose GPUs take `gpu_rate`, all together. Without workers each of its
// `devices` processes loads for itself, between its iterations. A worker with half a core is half a
// worker.
[[nodiscard]] double LoadedRate(const LoaderCoefficients& loader, double gpu_rate, double workers,
                                int devices);

// What a model takes for the loader of a job.
struct LoaderSide {
  LoaderCoefficients loader{};
  WorkersFrom from{};
};
// Iterations per second under the grant, beside these co-runners, of a job that does `alone` with
// its GPUs for itself and data enough.
[[nodiscard]] double LoadedRateUnder(const LoaderSide& side, double alone, const JobSpec& job,
                                     const Grant& grant, const CoRunners& co_runners);

// The largest number of jobs on one GPU of each, itself included, in the order of `jobs`.
[[nodiscard]] std::vector<int> SharingOf(std::span<const Slices* const> jobs);

// Where a job's GPUs are: its grant, or what the user names.
[[nodiscard]] const Slices& DevicesOf(const JobSpec& job);

}  // namespace trainyard::loader
