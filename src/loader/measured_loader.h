// SPDX-License-Identifier: Apache-2.0
// A loader model that is refined by what the cluster has measured of its own jobs: how fast their
// workers load, and how fast their GPUs are with data enough.
#pragma once

#include <string>

#include "loader/loader_execution.h"
#include "loader/loader_profiles.h"
#include "profile/measured_model.h"

namespace trainyard::loader {

// What loader workers need for jobs of this model: a fit without negative coefficients to the
// medians of all numbers of workers that have been measured (Measure::kLoader), each weighted by
// its samples. The stated curve, scaled to these medians, has the weight of a thousandth of a
// sample: it decides where they cannot, as beside a single number of workers. `stated` itself where
// nothing counts.
[[nodiscard]] LoaderCoefficients RefinedLoader(const LoaderCoefficients& stated,
                                               const profile::MeasuredBook& book,
                                               const std::string& model);

// For runs whose rates are those of MakeLoaderModel for jobs that are bound (JobSpec::profile_row).
// `profiles` must outlive what it makes.
[[nodiscard]] profile::Corrector RefinedBy(const LoaderProfiles& profiles, WorkersFrom from);

}  // namespace trainyard::loader
