// SPDX-License-Identifier: Apache-2.0
// The policies, groupings and tunings of the folders in here: each has a file that defines its
// entry, and a line here.
#pragma once

#include <span>

#include "base/catalog_lookup.h"
#include "trainyard/component_entry.h"

namespace trainyard::policies {

#define TRAINYARD_POLICIES(X) \
  X(Allox)                    \
  X(AntMan)                   \
  X(Auto)                     \
  X(Backfill)                 \
  X(Chronus)                  \
  X(Drf)                      \
  X(Edf)                      \
  X(ElasticEdf)               \
  X(ElasticFlow)              \
  X(Fifo)                     \
  X(FifoThroughput)           \
  X(FinishTimeFairness)       \
  X(Fjf)                      \
  X(Ftf)                      \
  X(GandivaPacking)           \
  X(GandivaPolicy)            \
  X(Isolated)                 \
  X(Las)                      \
  X(LoaderTuning)             \
  X(Makespan)                 \
  X(MaxMinFairness)           \
  X(MaxThroughput)            \
  X(MuriL)                    \
  X(MuriS)                    \
  X(Optimus)                  \
  X(Pollux)                   \
  X(Sia)                      \
  X(Sjf)                      \
  X(Srsf)                     \
  X(Srtf)                     \
  X(SynergyOpt)               \
  X(Tetris)                   \
  X(Themis)                   \
  X(Tiresias)                 \
  X(Torchloader)              \
  X(WaterFilling)             \
  X(Interleave)

TRAINYARD_POLICIES(TRAINYARD_DECLARE_ENTRY)

// Sorted by kind, then by name.
[[nodiscard]] std::span<const ComponentEntry> Policies();

}  // namespace trainyard::policies
