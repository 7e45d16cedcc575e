// SPDX-License-Identifier: Apache-2.0
// A trainer in C++ that may be preempted at any iteration: gradient descent on one parameter. It
// goes through its stages by turns where the scheduler interleaves jobs, saves a checkpoint on
// notice, and goes on from it.
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "trainyard_job.h"

namespace {

struct State {
  long iterations = 0;
  double parameter = 10;
};

std::string FileOf(const trainyard::Job& job) {
  const std::string folder = job.checkpoint_folder();
  return (folder.empty() ? "." : folder) + "/trainer.txt";
}

State Load(const std::string& file) {
  State state;
  std::ifstream(file) >> state.iterations >> state.parameter;
  return state;
}

// As a whole or not at all. A real trainer also syncs the file and its folder.
bool Save(const std::string& file, const State& state) {
  const std::string draft = file + ".tmp";
  std::ofstream out(draft);
  out.precision(17);
  out << state.iterations << ' ' << state.parameter << '\n';
  out.close();
  return out.good() && std::rename(draft.c_str(), file.c_str()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  using std::chrono::milliseconds;
  trainyard::Job job;
  const long iterations = argc > 1 ? std::stol(argv[1]) : 100;
  const std::string file = FileOf(job);
  State state = Load(file);
  std::printf("begins at %ld\n", state.iterations);
  while (state.iterations < iterations && !job.notice()) {
    {
      const trainyard::Stage stage(job, "load");
      std::this_thread::sleep_for(milliseconds(5));
    }
    {
      const trainyard::Stage stage(job, "forward");
      std::this_thread::sleep_for(milliseconds(5));
      state.parameter -= 0.1 * 2 * state.parameter;  // of the loss x^2
    }
    job.Progress(static_cast<double>(++state.iterations));
    job.Metric("loss", state.parameter * state.parameter);
  }
  if (!Save(file, state)) {
    job.Note("the checkpoint cannot be written");
    return 1;
  }
  job.Checkpointed(static_cast<double>(state.iterations));
  if (state.iterations >= iterations) {
    job.Finished();
  }
  std::printf("leaves at %ld with loss %g\n", state.iterations, state.parameter * state.parameter);
  return 0;
}
