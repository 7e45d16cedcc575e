// SPDX-License-Identifier: Apache-2.0
// One run of a training script by which something is measured.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/time.h"

namespace trainyard::profiler {

// In which a script runs, by podman.
struct TrialContainer {
  std::string image;                // empty: in none
  std::vector<std::string> mounts;  // SOURCE:TARGET[:FLAG+FLAG]
};

struct Trial {
  std::string name;  // for people: "batch 64, 2 GPUs"
  std::vector<std::string> command;
  std::string folder;  // where it works
  TrialContainer container{};
  int gpus = 1;            // and training processes
  int loader_workers = 0;  // of each of these, as the script is told; 0: nothing
  int cores = 0;           // the first ones of the machine, which it is bound to; 0: all
  double warmup = 10;      // iterations that do not count
  double iterations = 50;  // that are measured, after them
  int burst = 1;           // iterations come in such: a multiple of these is measured
  Duration limit = std::chrono::minutes(10);  // a run that takes longer hangs
  // The script is given notice after the iterations, in place of ending by itself.
  bool until_notice = false;
  // It goes on from the checkpoint of this one, which was given notice after its warm-up. Empty: it
  // begins from nothing.
  std::vector<Trial> before{};
};

// What a run has given. Times in seconds; 0: it did not tell.
struct TrialResult {
  // Why it does not count, with what to do; empty: it counts.
  std::string failure{};
  bool hopeless = false;     // another run would fail for the same reason
  std::string note{};        // what to tell of a run that counts; empty: nothing
  bool interrupted = false;  // by the user: there is no result, and no other is wanted
  double iteration_s = 0;    // a mean of the measured iterations
  double start_s = 0;        // from the start of the processes to the end of the first iteration
  double stop_s = 0;         // from the (first) notice to the end of the last process
  double change_s = 0;       // from the notice of the attempt before to the end of this one's first
  double loading_share = 0;  // of an iteration, 0 to 1, waited for data
  std::array<double, 3> stages_s{};  // loading (with preprocessing), GPU, network
  double wall_s = 0;                 // that the whole run took; noted by the measurer

  [[nodiscard]] bool ok() const { return failure.empty(); }
};

class TrialRunner {
 public:
  virtual ~TrialRunner() = default;
  // Runs it to its end; nothing of it is left afterwards.
  [[nodiscard]] virtual TrialResult Run(const Trial& trial) = 0;
};

}  // namespace trainyard::profiler
