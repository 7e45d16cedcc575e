// SPDX-License-Identifier: Apache-2.0
// whole_runs PROGRAM FOLDER [RUNS]: runs the program on generated traces and compares with the
// targets. Every figure is that of a whole process: reading, simulating, writing the three files.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

constexpr double kLeastRate = 100'000;      // jobs per CPU second
constexpr double kMostRateChange = 2;       // between 100,000 and 1,000,000 jobs
constexpr double kMostMemory = 4096;        // MiB
constexpr double kMostDeepSlowdown = 3;     // per event
constexpr double kMostReading = 10;         // seconds for 3,000,000 jobs
constexpr double kMostReadingMemory = 256;  // MiB, job by job
const std::vector<std::string> kPolicies{"fifo", "srtf", "las", "tiresias"};

struct Cost {
  double cpu_seconds = 0;
  double peak_mb = 0;
};

Cost RunOnce(const std::vector<std::string>& command) {
  std::fflush(nullptr);  // or the child prints it, too
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) {
      _exit(126);
    }
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fmt::print(stderr, "{} failed\n", fmt::join(command, " "));
    std::exit(1);
  }
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
          .peak_mb = static_cast<double>(usage.ru_maxrss) / 1024};
}

// The median of the CPU times, the highest of the peaks.
Cost Median(const std::vector<std::string>& command, int runs) {
  std::vector<double> times;
  Cost cost;
  for (int i = 0; i < runs; ++i) {
    const Cost one = RunOnce(command);
    times.push_back(one.cpu_seconds);
    cost.peak_mb = std::max(cost.peak_mb, one.peak_mb);
  }
  std::sort(times.begin(), times.end());
  cost.cpu_seconds = times[times.size() / 2];
  return cost;
}

class Bench {
 public:
  Bench(std::string program, std::string folder, int runs)
      : program_(std::move(program)), folder_(std::move(folder)), runs_(runs) {
    std::filesystem::create_directories(folder_);
  }

  // 90 % of 1,000 nodes x 8 GPUs.
  std::string Generate(int jobs) {
    std::string path = fmt::format("{}/{}.csv", folder_, jobs);
    if (!std::filesystem::exists(path)) {
      RunOnce({program_, "trace", "generate", "--jobs", std::to_string(jobs), "--seed", "1",
               "--cluster-gpus", "8000", "--load", "0.9", "--largest-job", "64", "--longest-hours",
               "4", "--out", path});
    }
    return path;
  }

  // The same jobs, the first half of them submitted at time 0: 100,000 jobs wait throughout.
  std::string Deepen(const std::string& shallow, int backlog) {
    std::string path = folder_ + "/deep.csv";
    std::ifstream in(shallow);
    std::ofstream out(path);
    std::string row;
    std::getline(in, row);
    out << row << "\n";
    double shift = -1;
    for (int i = 0; std::getline(in, row); ++i) {
      const std::size_t from = row.find(',') + 1;
      const std::size_t to = row.find(',', from);
      const double submit = std::stod(row.substr(from, to - from));
      if (i >= backlog && shift < 0) {
        shift = submit;
      }
      out << row.substr(0, from) << (i < backlog ? 0 : static_cast<long long>(submit - shift))
          << row.substr(to) << "\n";
    }
    return path;
  }

  Cost Simulate(const std::string& trace, const std::string& policy) {
    return Median({program_, "simulate", trace, "--cluster", "1000x8", "--policy", policy, "--out",
                   folder_ + "/out"},
                  runs_);
  }

  Cost Read(const std::string& trace, const std::string& command) {
    return Median({program_, "trace", command, trace}, runs_);
  }

  // Of the run simulated last: the facts taken and the instants at which it decided.
  [[nodiscard]] double Events() const {
    const nlohmann::json summary =
        nlohmann::json::parse(std::ifstream(folder_ + "/out/summary.json"));
    return summary.at("events").get<double>() + summary.at("decisions").get<double>();
  }

  void Check(bool good) { missed_ = missed_ || !good; }
  [[nodiscard]] bool missed() const { return missed_; }

 private:
  const std::string program_;
  const std::string folder_;
  const int runs_;
  bool missed_ = false;
};

const char* Verdict(bool good) { return good ? "ok" : "MISSED"; }

void Rates(Bench& bench) {
  fmt::print("1,000 nodes x 8 GPUs, 90 % load, jobs.csv and timeline.csv written\n");
  fmt::print("{:<10} {:>14} {:>14} {:>8} {:>10}\n", "policy", "100k jobs/s", "1M jobs/s", "ratio",
             "peak MiB");
  const std::string small = bench.Generate(100'000);
  const std::string large = bench.Generate(1'000'000);
  for (const std::string& policy : kPolicies) {
    const double rate_small = 1e5 / bench.Simulate(small, policy).cpu_seconds;
    const Cost cost = bench.Simulate(large, policy);
    const double rate_large = 1e6 / cost.cpu_seconds;
    const double ratio = std::max(rate_small, rate_large) / std::min(rate_small, rate_large);
    const bool good = std::min(rate_small, rate_large) >= kLeastRate && ratio <= kMostRateChange &&
                      cost.peak_mb < kMostMemory;
    bench.Check(good);
    fmt::print("{:<10} {:>14.0f} {:>14.0f} {:>8.2f} {:>10.0f}  {}\n", policy, rate_small,
               rate_large, ratio, cost.peak_mb, Verdict(good));
  }
}

void DeepQueue(Bench& bench) {
  constexpr int kJobs = 200'000;
  constexpr int kBacklog = 100'000;
  fmt::print("\n{} jobs at 90 % load, and with {} of them waiting from the start\n", kJobs,
             kBacklog);
  fmt::print("event: a submit, an end, or an instant at which the policy decides\n");
  fmt::print("{:<10} {:>14} {:>14} {:>8}\n", "policy", "us per event", "deep", "ratio");
  const std::string shallow = bench.Generate(kJobs);
  const std::string deep = bench.Deepen(shallow, kBacklog);
  for (const std::string& policy : kPolicies) {
    double flat = bench.Simulate(shallow, policy).cpu_seconds * 1e6;
    flat /= bench.Events();
    double queued = bench.Simulate(deep, policy).cpu_seconds * 1e6;
    queued /= bench.Events();
    const bool good = queued / flat <= kMostDeepSlowdown;
    bench.Check(good);
    fmt::print("{:<10} {:>14.2f} {:>14.2f} {:>8.2f}  {}\n", policy, flat, queued, queued / flat,
               Verdict(good));
  }
}

void Reading(Bench& bench) {
  fmt::print("\n3,000,000 jobs read, job by job\n");
  fmt::print("{:<10} {:>14} {:>14}\n", "trace", "CPU seconds", "peak MiB");
  const std::string trace = bench.Generate(3'000'000);
  for (const std::string command : {"validate", "stats"}) {
    const Cost cost = bench.Read(trace, command);
    const bool good = cost.cpu_seconds < kMostReading && cost.peak_mb < kMostReadingMemory;
    bench.Check(good);
    fmt::print("{:<10} {:>14.2f} {:>14.0f}  {}\n", command, cost.cpu_seconds, cost.peak_mb,
               Verdict(good));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: whole_runs PROGRAM FOLDER [RUNS]\n", stderr);
    return 2;
  }
  try {
    Bench bench(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 3);
    Rates(bench);
    DeepQueue(bench);
    Reading(bench);
    return bench.missed() ? 1 : 0;
  } catch (const std::exception& error) {  // a file that cannot be read
    std::fprintf(stderr, "whole_runs: %s\n", error.what());
    return 1;
  }
}
