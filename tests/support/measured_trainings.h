// SPDX-License-Identifier: Apache-2.0
// For tests: a folder of measured trainings, made by hand.
#pragma once

#include <filesystem>
#include <string>

#include "support/scratch_folder.h"

namespace trainyard {

// Writes apps/NAME with two epochs of 100 and 200 iterations at batch 32 (at 64 and 128 a little
// more), passes of 4 to 64 samples that take 10 ms and 1 ms for each sample, and averaging that
// takes 20 ms in a node and 50 ms between nodes.
inline void WriteTraining(const ScratchFolder& folder, const std::string& name) {
  std::filesystem::create_directories(folder.path() + "/apps/" + name);
  const auto row = [](int part, int sync_ms) {
    const double sync = sync_ms / 1000.0;
    const double compute = 0.01 + 0.001 * part;
    return std::to_string(part) + "," + std::to_string(compute + sync) + "," +
           std::to_string(sync) + "\n";
  };
  std::string placements = "placement,local_bsz,step_time,sync_time\n";
  for (const char* placement : {"1", "2", "3", "4", "11", "12", "22", "44"}) {
    const std::string text = placement;
    const int sync = text.size() > 1 ? 50 : text == "1" ? 1 : 20;
    for (const int part : {4, 16, 64}) {
      placements += text + "," + row(part, sync);
    }
  }
  (void)folder.Write("apps/" + name + "/placements.csv", placements);
  std::string scalability = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n";
  for (const int part : {4, 64}) {
    scalability += "4,16," + row(part, 60);
  }
  (void)folder.Write("apps/" + name + "/scalability.csv", scalability);
  int more = 0;
  for (const char* batch : {"32", "64", "128"}) {
    (void)folder.Write("apps/" + name + "/validation-" + batch + ".csv",
                       "progress,iteration,metric,grad_sqr,grad_var\n" +
                           std::to_string(100 + more) + ",1,0,1," + std::to_string(1 + more) +
                           "\n" + std::to_string(300 + more) + ",2,0,1,100\n");
    ++more;
  }
}

}  // namespace trainyard
