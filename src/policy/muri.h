// SPDX-License-Identifier: Apache-2.0
// What muri-s and muri-l share: everything but the rank of a job.
#pragma once

#include <array>
#include <cstdint>

#include "policy/interleave.h"
#include "trainyard/component_entry.h"

namespace trainyard {

enum class MuriRank : std::uint8_t {
  kRemaining,  // service that is left: time on the GPUs alone x GPUs
  kAttained,   // service so far
};

inline constexpr std::array<OptionSpec, 6> kMuriOptions{{
    kInterleaveOptions[0],
    kInterleaveOptions[1],
    kInterleaveOptions[2],
    kInterleaveOptions[3],
    kInterleaveOptions[4],
    {"unstarted", OptionSpec::Kind::kChoice, "left",
     "muri-s: a job that has never run is ranked by the work it has left, or by its declared "
     "duration",
     "left|declared"},
}};

// `name`: of the catalogue.
[[nodiscard]] Result<Components> MakeMuri(std::string_view name, MuriRank rank,
                                          const Options& options);

}  // namespace trainyard
