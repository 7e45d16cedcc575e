// SPDX-License-Identifier: Apache-2.0
// trainyard-golden: runs the cases of a manifest of published results and compares job by job.
// The form of the manifest is described in docs/golden.md.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <unordered_map>

#include "base/text.h"
#include "golden/digests.h"
#include "golden/figures.h"
#include "golden/golden_case.h"

namespace trainyard {
namespace {

struct Options {
  std::string manifest;
  std::string reference = "../shared";
  std::vector<std::string> roots;
  std::string filter;
  std::size_t expect = 0;
  bool supported = false;
  bool present = false;
  std::string known;
  std::string cpu;
  std::vector<std::string> least;
  std::string digests;
  std::string source;
  bool write_digests = false;
  std::string figures;
};

// How much less CPU the cases whose names begin with `prefix` must take than the originals did.
struct Target {
  std::string prefix;
  double times = 0;
  std::size_t cases = 0;
  double cpu = 0;       // seconds
  double original = 0;  // seconds, by the wall clock where no CPU seconds are known
  bool by_wall = false;
};

struct Tally {
  std::size_t equal = 0;
  std::size_t different = 0;
  std::size_t unsupported = 0;
  std::size_t absent = 0;
  std::size_t known = 0;  // differ as listed
  double cpu = 0;         // seconds, of the cases whose original's are known
  double original_cpu = 0;
  std::vector<Target> targets;
  Digests digests;
};

Result<std::map<std::string, std::string>> RootsOf(const Options& options) {
  std::map<std::string, std::string> roots{{"ref", options.reference}};
  for (const std::string& root : options.roots) {
    const std::size_t equals = root.find('=');
    if (equals == std::string::npos) {
      return InvalidArgument("--root is '" + root + "'; expected NAME=DIR");
    }
    roots[root.substr(0, equals)] = root.substr(equals + 1);
  }
  return roots;
}

Result<std::vector<Target>> TargetsOf(const Options& options) {
  std::vector<Target> targets;
  for (const std::string& text : options.least) {
    const std::size_t equals = text.find('=');
    const auto times =
        equals == std::string::npos ? std::nullopt : base::ToNumber(text.substr(equals + 1));
    if (!times || options.cpu.empty()) {
      return InvalidArgument("--least is '" + text + "'; expected PREFIX=TIMES, and --cpu DIR");
    }
    targets.push_back({.prefix = text.substr(0, equals), .times = *times});
  }
  return targets;
}

void Count(const GoldenCase& golden, const Comparison& comparison, std::vector<Target>& targets) {
  const std::optional<double> original =
      golden.original_cpu ? golden.original_cpu : golden.original_wall;
  for (Target& target : targets) {
    if (original && golden.name.starts_with(target.prefix)) {
      ++target.cases;
      target.cpu += comparison.cpu_seconds;
      target.original += *original;
      target.by_wall = target.by_wall || !golden.original_cpu;
    }
  }
}

// False: one is missed, or has no case.
bool ReportTargets(const std::vector<Target>& targets) {
  bool all_met = true;
  for (const Target& target : targets) {
    const double times = target.cpu > 0 ? target.original / target.cpu : 0;
    const bool met = target.cases > 0 && times >= target.times;
    all_met = all_met && met;
    fmt::print(
        "{:<14} {:>3} cases: CPU {:.3f} s, originals {:.1f} s{}: {:.0f} times less, at least {} "
        "expected  {}\n",
        target.prefix, target.cases, target.cpu, target.original,
        target.by_wall ? " by the wall clock" : "", times, target.times, met ? "ok" : "MISSED");
  }
  return all_met;
}

void Print(const GoldenCase& golden, const Comparison& comparison, bool known) {
  const std::string_view verdict = comparison.equal ? "equal" : known ? "near" : "DIFFERENT";
  fmt::print("{:<9} {:<58} {}/{} jobs{}\n", comparison.supported ? verdict : "no", golden.name,
             comparison.jobs_equal, comparison.jobs_total,
             comparison.note.empty() ? "" : "  " + comparison.note);
  std::fflush(stdout);
}

bool HasInputs(const GoldenCase& golden) {
  const scenario::InputPaths& paths = golden.inputs;
  const auto there = [](const std::string& path) {
    return path.empty() || std::filesystem::exists(path);
  };
  return there(paths.trace) && there(paths.cluster) && there(paths.profiles);
}

Result<Tally> RunAll(const Options& options) {
  const Result<std::map<std::string, std::string>> roots = RootsOf(options);
  if (!roots.ok()) {
    return roots.error();
  }
  const Result<std::vector<GoldenCase>> cases = ReadManifest(options.manifest, roots.value());
  if (!cases.ok()) {
    return cases.error();
  }
  std::map<std::string, KnownDifference> known;
  if (!options.known.empty()) {
    auto read = ReadKnown(options.known);
    if (!read.ok()) {
      return read.error();
    }
    known = std::move(read).value();
  }
  Result<std::vector<Target>> targets = TargetsOf(options);
  if (!targets.ok()) {
    return targets.error();
  }
  const std::regex filter(options.filter);
  Tally tally{.targets = std::move(targets).value()};
  for (const GoldenCase& golden : cases.value()) {
    if (!std::regex_search(golden.name, filter)) {
      continue;
    }
    if (options.present && !HasInputs(golden)) {
      ++tally.absent;
      continue;
    }
    const Comparison comparison = RunGolden(golden, options.cpu);
    if (!comparison.supported && options.supported) {
      ++tally.unsupported;
      continue;
    }
    const auto listed = known.find(golden.name);
    const bool near = listed != known.end() && IsNear(listed->second, golden, comparison);
    Print(golden, comparison, near);
    if (comparison.supported) {
      Count(golden, comparison, tally.targets);
    }
    if (!options.digests.empty()) {
      const Result<std::string> digest =
          DigestOf(comparison.journal_digest, options.cpu + "/" + golden.name);
      if (!digest.ok()) {
        return digest.error();
      }
      tally.digests["published/" + golden.name] = digest.value();
    }
    if (!options.cpu.empty() && golden.original_cpu && comparison.supported) {
      fmt::print("          CPU {:.4f} s, original {:.2f} s: {:.0f} times less\n",
                 comparison.cpu_seconds, *golden.original_cpu,
                 *golden.original_cpu / comparison.cpu_seconds);
      tally.cpu += comparison.cpu_seconds;
      tally.original_cpu += *golden.original_cpu;
    }
    ++(!comparison.supported ? tally.unsupported
       : comparison.equal    ? tally.equal
       : near                ? tally.known
                             : tally.different);
  }
  return tally;
}

// Whether the runs are those that the file lists; or writes it.
Result<bool> CheckDigests(const Options& options, Digests digests) {
  Result<Digests> catalogue =
      RunCatalogue(options.source, options.reference, options.cpu + "/catalogue");
  if (!catalogue.ok()) {
    return catalogue.error();
  }
  digests.merge(catalogue.value());
  if (options.write_digests) {
    const Status written = WriteDigests(digests, options.digests);
    return written.ok() ? Result<bool>(true) : written.error();
  }
  const Result<Digests> expected = ReadDigests(options.digests);
  return expected.ok() ? Result<bool>(ReportDigests(expected.value(), digests)) : expected.error();
}

int Fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return error.code == ErrorCode::kBadInput ? 3 : 2;
}

int WriteFiguresOf(const Options& options) {
  const Result<std::map<std::string, std::string>> roots = RootsOf(options);
  if (!roots.ok()) {
    return Fail(roots.error());
  }
  const Status written = WriteFigures(options.manifest, roots.value(), options.figures);
  return written.ok() ? 0 : Fail(written.error());
}

int Main(int argc, char** argv) {
  CLI::App app{"Compares Trainyard with published results, case by case", "trainyard-golden"};
  Options options;
  if (const char* reference = std::getenv("TRAINYARD_REFERENCE")) {
    options.reference = reference;
  }
  app.add_option("MANIFEST", options.manifest, "default: golden/manifest.csv of the reference");
  app.add_option("--reference", options.reference,
                 "folder with data/ and golden/ (also the root 'ref')")
      ->capture_default_str();
  app.add_option("--root", options.roots, "NAME=DIR: folder of paths that begin with 'NAME:'");
  app.add_option("--filter", options.filter, "regular expression on case names");
  app.add_option("--expect", options.expect, "fail unless at least this many cases are equal");
  app.add_option("--known", options.known,
                 "CSV of cases that are known to differ (case, accepted_within, mean_within)");
  app.add_option(
      "--cpu", options.cpu,
      "write the runs' files to this folder and compare CPU seconds with the originals'");
  app.add_option("--least", options.least,
                 "PREFIX=TIMES: fail unless those cases take so much less CPU than the originals");
  auto* const digests =
      app.add_option("--digests", options.digests,
                     "CSV of the digests that all runs, and those of the catalogue, must have");
  app.add_option("--source", options.source, "source tree, for --digests")->needs(digests);
  digests->needs("--source")->needs("--cpu")->excludes("--filter");
  app.add_flag("--write-digests", options.write_digests, "write that file instead")->needs(digests);
  app.add_option("--write-figures", options.figures,
                 "write to this folder what the repository keeps of the manifest; run nothing");
  app.add_flag("--supported", options.supported, "leave out cases of policies that are not built");
  app.add_flag("--present", options.present, "leave out cases whose inputs are not there");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.manifest.empty()) {
    options.manifest = options.reference + "/golden/manifest.csv";
  }
  if (!options.figures.empty()) {
    return WriteFiguresOf(options);
  }
  const Result<Tally> tally = RunAll(options);
  if (!tally.ok()) {
    return Fail(tally.error());
  }
  const Tally& t = tally.value();
  if (t.original_cpu > 0) {
    fmt::print("CPU {:.3f} s in all, originals {:.1f} s: {:.0f} times less\n", t.cpu,
               t.original_cpu, t.original_cpu / t.cpu);
  }
  fmt::print("{} cases equal, {} near, {} different, {} not supported{}\n", t.equal, t.known,
             t.different, t.unsupported,
             options.present ? fmt::format(", {} without their inputs", t.absent) : "");
  bool same = true;
  if (!options.digests.empty()) {
    const Result<bool> checked = CheckDigests(options, t.digests);
    if (!checked.ok()) {
      return Fail(checked.error());
    }
    same = checked.value();
  }
  const bool fast = ReportTargets(t.targets);
  const bool missing = t.unsupported > 0 && !options.supported;
  return !fast || !same || t.different > 0 || missing || t.equal < options.expect ? 1 : 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  try {
    return trainyard::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "trainyard-golden: {}\n", error.what());
    return 1;
  }
}
