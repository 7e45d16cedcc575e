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

// Writes tables of application `net` on two types of GPU, `slow` with nodes of two GPUs and `fast`
// with nodes of four: passes as those of WriteTraining, and four times as fast.
inline void WriteTypedTraining(const ScratchFolder& folder) {
  std::string placements = "application,gpu_type,placement,local_bsz,step_time,sync_time\n";
  const auto add = [&placements](const std::string& type, const std::string& placement, int part,
                                 double speed) {
    const double sync = placement == "1" ? 0.001 : placement.size() > 1 ? 0.05 : 0.02;
    placements += "net," + type + "," + placement + "," + std::to_string(part) + "," +
                  std::to_string((0.01 + 0.001 * part) / speed + sync) + "," +
                  std::to_string(sync) + "\n";
  };
  for (const int part : {4, 16, 64}) {
    for (const char* placement : {"1", "2", "22"}) {
      add("slow", placement, part, 1);
    }
    for (const char* placement : {"1", "2", "3", "4"}) {
      add("fast", placement, part, 4);
    }
  }
  add("fast", "1", 128, 4);
  placements += "pipeline,fast,2,1,1,1.5\n";
  (void)folder.Write("placements.csv", placements);
  (void)folder.Write("scalability.csv",
                     "application,gpu_type,num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
                     "net,slow,4,8,4,0.1,0.06\nnet,slow,4,8,32,0.11,0.06\n");
  std::string epochs = "application,batch_size,epoch,progress,grad_sqr,grad_var\n";
  for (const char* batch : {"32", "64", "128"}) {
    epochs += "net," + std::string(batch) + ",0,100,1,1\nnet," + batch + ",1,300,1,100\n";
  }
  (void)folder.Write("validation.csv", epochs + "pipeline,32,0,100,1,1\n");
}

}  // namespace trainyard
