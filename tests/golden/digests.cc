// SPDX-License-Identifier: Apache-2.0
#include "golden/digests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/catalog_lookup.h"
#include "engine/journal.h"
#include "engine/run.h"
#include "io/csv_reader.h"
#include "io/file.h"
#include "policies/policies.h"
#include "results/write/output.h"
#include "results/write/output_file.h"
#include "scenario/scenario.h"
#include "world/simulated_world.h"

namespace trainyard {
namespace {

constexpr std::string_view kRefused = "refused";
constexpr std::size_t kDigits = 16;
// Jobs of a trace that `auto` simulates at every decision, and `pollux` and `sia` search for.
constexpr std::size_t kMostForked = 60;

// Traces small enough that all policies run on them in seconds.
struct Example {
  std::string_view name;
  bool in_reference = true;  // else in the source tree
  scenario::InputPaths paths;
  std::size_t most_jobs = 1000;  // the first ones, where all of them would take minutes
};

std::array<Example, 5> Examples() {
  return {{{.name = "example",
            .in_reference = false,
            .paths = {.trace = "data/example_trace.csv",
                      .cluster = "data/example_cluster.toml",
                      .profiles = "data/example_profiles.csv"}},
           {.name = "elasticflow",
            .paths = {.trace = "data/elasticflow/traces/first25_of_195.csv",
                      .format = "elasticflow",
                      .cluster = "data/elasticflow/cluster_specs/n4g8.csv",
                      .profiles = "data/elasticflow/throughputs_A100"}},
           {.name = "muri",
            .paths = {.trace = "data/muri/trace1_first200.csv.gz",
                      .format = "muri",
                      .cluster = "data/muri/cluster_n8g8.csv"},
            .most_jobs = 80},
           {.name = "synergy",
            .paths = {.trace = "data/synergy/trace_static100.csv",
                      .format = "synergy",
                      .cluster = "data/synergy/clusters/static_trace.ini",
                      .profiles = "data/synergy"}},
           {.name = "tiresias",
            .paths = {.trace = "data/tiresias/60_job.csv",
                      .format = "tiresias",
                      .cluster = "data/tiresias/n4g4.csv"}}}};
}

scenario::InputPaths Within(scenario::InputPaths paths, const std::string& folder) {
  for (std::string* path : {&paths.trace, &paths.cluster, &paths.profiles}) {
    *path = path->empty() ? "" : folder + "/" + *path;
  }
  return paths;
}

// Every node is down for an hour in twelve, one after the other, for as long as a week.
void AddFailures(Cluster& cluster) {
  constexpr int kFailures = 84;
  for (int i = 0; i < kFailures; ++i) {
    const NodeId node = NodeAt(static_cast<std::size_t>(i) % cluster.nodes.size());
    const TimePoint down = TimePoint{} + std::chrono::hours(1 + 2 * i);
    cluster.changes.push_back({.at = down, .node = node, .up = false});
    cluster.changes.push_back({.at = down + std::chrono::hours(1), .node = node, .up = true});
  }
}

// All that the engine knows, as a snapshot of the controller holds it.
std::string StateOf(engine::Engine& engine) {
  StateStream state;
  for (std::size_t i = 0; i < engine.records().size(); ++i) {
    engine.SerializeJob(JobAt(i), state);
  }
  engine.Serialize(state);
  return state.TakeBytes();
}

bool Restore(engine::Engine& engine, std::size_t jobs, const std::string& bytes) {
  StateStream state{bytes};
  for (std::size_t i = 0; i < jobs; ++i) {
    engine.SerializeJob(JobAt(i), state);
  }
  engine.Serialize(state);
  return state.complete();
}

// As in a simulated world; after so many passes of the loop another engine goes on.
Result<std::string> SimulateInHalves(const scenario::Inputs& inputs, std::size_t passes,
                                     engine::EngineSetup setup,
                                     const scenario::CollectFrom& collect) {
  std::optional<engine::Engine> engine;
  engine.emplace(setup);
  world::SimulatedWorld world(inputs.jobs, inputs.cluster, *engine);
  engine::Journal journal;
  Result<bool> more = true;
  for (std::size_t pass = 0; more.ok() && more.value(); ++pass) {
    if (pass == passes) {
      const std::size_t jobs = engine->records().size();
      const std::string state = StateOf(*engine);
      engine.emplace(setup);  // in its place, where the world looks for it
      if (!Restore(*engine, jobs, state)) {
        return Failed("what was saved of the engine cannot be read");
      }
    }
    more = engine::Turn(*engine, world, &journal);
  }
  if (!more.ok()) {
    return more.error();
  }
  if (Status flushed = journal.Flush(); !flushed.ok()) {
    return flushed.error();
  }
  engine->Settle(world.now());
  collect(*engine, {});
  return journal.digest();
}

// The runs of one policy on one trace.
class PolicyRuns {
 public:
  PolicyRuns(const scenario::Inputs& plain, const scenario::Inputs& failing, std::string folder)
      : plain_(plain), failing_(failing), folder_(std::move(folder)) {}

  [[nodiscard]] Status Run(std::string_view example, std::string_view policy, Digests& digests) {
    const auto name = [&](std::string_view what) {
      return fmt::format("{}/{}/{}", example, policy, what);
    };
    std::size_t passes = 0;
    for (const std::string& placement : {std::string(), std::string("first-fit")}) {
      for (const bool fails : {false, true}) {
        const scenario::RunRequest request{
            .names = {.policy = std::string(policy), .placement = placement}};
        const Result<results::RunResult> run =
            scenario::RunScenario(fails ? failing_ : plain_, request);
        if (run.ok() && placement.empty() && fails) {
          passes = static_cast<std::size_t>(run.value().decisions) / 2;
        }
        const std::string what = placement.empty() ? "own" : placement;
        if (Status kept = Keep(run, name(what + (fails ? "-failures" : "")), digests); !kept.ok()) {
          return kept;
        }
      }
    }
    const scenario::RunRequest request{.names = {.policy = std::string(policy)}};
    const Result<results::RunResult> halves = scenario::RunScenario(
        failing_, request,
        [&](const scenario::Assembly& /*parts*/, engine::EngineSetup setup,
            const scenario::CollectFrom& collect) {
          return SimulateInHalves(failing_, passes, std::move(setup), collect);
        });
    return Keep(halves, name("own-failures-restart"), digests);
  }

 private:
  Status Keep(const Result<results::RunResult>& run, const std::string& name,
              Digests& digests) const {
    if (!run.ok()) {
      digests[name] = kRefused;
      return {};
    }
    if (Status written = results::WriteRun(run.value(), folder_); !written.ok()) {
      return written;
    }
    Result<std::string> digest = DigestOf(run.value().journal_digest, folder_);
    if (!digest.ok()) {
      return digest.error();
    }
    digests[name] = std::move(digest).value();
    return {};
  }

  const scenario::Inputs& plain_;
  const scenario::Inputs& failing_;
  const std::string folder_;
};

}  // namespace

Result<std::string> DigestOf(std::string journal_digest, const std::string& folder) {
  std::string all = std::move(journal_digest);
  for (const char* const file : {"jobs.csv", "timeline.csv"}) {
    const Result<std::string> digest = io::Sha256OfFile(folder + "/" + file);
    if (!digest.ok()) {
      return digest.error();
    }
    all += digest.value();
  }
  return io::Sha256Hex(all).substr(0, kDigits);
}

Result<Digests> RunCatalogue(const std::string& source, const std::string& reference,
                             const std::string& folder) {
  Digests digests;
  for (const Example& example : Examples()) {
    Result<scenario::Inputs> plain =
        scenario::ReadInputs(Within(example.paths, example.in_reference ? reference : source));
    if (!plain.ok()) {
      return plain.error();
    }
    std::vector<JobSpec>& jobs = plain.value().trace->jobs;  // those of the runs
    jobs.resize(std::min(jobs.size(), example.most_jobs));
    scenario::Inputs failing = plain.value();
    AddFailures(failing.cluster);
    for (const ComponentEntry& policy :
         base::EntriesOfKind(policies::Policies(), ComponentKind::kPolicy)) {
      if ((policy.name == "auto" || policy.name == "pollux" || policy.name == "sia") &&
          plain.value().jobs->size() > kMostForked) {
        continue;
      }
      const Status run =
          PolicyRuns(plain.value(), failing, folder).Run(example.name, policy.name, digests);
      if (!run.ok()) {
        return run.error();
      }
    }
  }
  return digests;
}

Result<Digests> ReadDigests(const std::string& path) {
  const Result<io::CsvTable> table = io::CsvTable::Open(path);
  if (!table.ok()) {
    return table.error();
  }
  const Result<int> run = table.value().Require({"run"});
  const Result<int> digest = table.value().Require({"digest"});
  if (!run.ok() || !digest.ok()) {
    return (run.ok() ? digest : run).error();
  }
  Digests digests;
  const Status read = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    digests[std::string(row.Text(run.value()))] = std::string(row.Text(digest.value()));
    return {};
  });
  return read.ok() ? Result<Digests>(std::move(digests)) : read.error();
}

Status WriteDigests(const Digests& digests, const std::string& path) {
  results::OutputFile file(path);
  file.text() = "run,digest\n";
  for (const auto& [run, digest] : digests) {
    file.text() += fmt::format("{},{}\n", run, digest);
  }
  const Status closed = file.Close();
  return closed.ok() ? file.Publish() : closed;
}

bool ReportDigests(const Digests& expected, const Digests& found) {
  std::size_t different = 0;
  const auto report = [&different](const std::string& run, std::string_view what) {
    fmt::print("{:<58} {}\n", run, what);
    ++different;
  };
  for (const auto& [run, digest] : expected) {
    const auto now = found.find(run);
    if (now == found.end()) {
      report(run, "was not run");
    } else if (now->second != digest) {
      report(run, fmt::format("{}, expected {}", now->second, digest));
    }
  }
  for (const auto& [run, digest] : found) {
    if (!expected.contains(run)) {
      report(run, "is not listed");
    }
  }
  fmt::print("digests: {} runs, {} as listed\n", found.size(),
             static_cast<std::ptrdiff_t>(found.size()) - static_cast<std::ptrdiff_t>(different));
  return different == 0;
}

}  // namespace trainyard
