// SPDX-License-Identifier: Apache-2.0
// A trainer in C++ that may be preempted at any iteration: gradient descent on one parameter. It
// goes through its stages by turns where the scheduler interleaves jobs, saves a checkpoint on
// notice, and goes on from it.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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

// From the command line; nothing where it is no number from 1 on.
std::optional<long> IterationsOf(int argc, char** argv) {
  if (argc == 1) {
    return 100;
  }
  const std::string_view text = argv[1];
  long iterations = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), iterations);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return argc == 2 && whole && iterations >= 1 ? std::optional(iterations) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  using std::chrono::milliseconds;
  const std::optional<long> asked = IterationsOf(argc, argv);
  if (!asked) {
    std::fprintf(stderr, "usage: %s [ITERATIONS]  (from 1 on; default 100)\n", argv[0]);
    return 2;
  }
  const long iterations = *asked;
  trainyard::Job job;
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
