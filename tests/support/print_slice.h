// SPDX-License-Identifier: Apache-2.0
// For tests: slices in the messages of GoogleTest, which finds the function in their namespace.
#pragma once

#include <ios>
#include <ostream>

#include "trainyard/resources.h"

namespace trainyard {

inline void PrintTo(const Slice& slice, std::ostream* out) {
  *out << "n" << Index(slice.node) << ":" << std::hex << slice.gpus << std::dec << " ("
       << slice.soft.milli_cpus << " mCPU, " << slice.soft.memory_mib << " MiB)";
}

}  // namespace trainyard
