// SPDX-License-Identifier: Apache-2.0
#include "fuzz/targets.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "cli/command_line.h"
#include "cli/live/config/config_file.h"
#include "identity/keys.h"
#include "identity/token.h"
#include "launcher/credential.h"
#include "profile/throughput_table.h"
#include "requests/job_file.h"
#include "requests/slurm/batch_script.h"
#include "requests/slurm/slurm_time.h"
#include "scenario/preset.h"
#include "supervisor/job/job_protocol.h"
#include "trace/clusters/cluster_file.h"
#include "trace/trace.h"

namespace trainyard::fuzz {
namespace {

// A file with these bytes, for readers that take a path. The last one is written over.
std::string FileOf(std::string_view bytes, std::string_view ending) {
  static const std::string kFolder = [] {
    const char* const set = std::getenv("TMPDIR");
    std::string pattern = std::string(set == nullptr ? "/tmp" : set) + "/trainyard-fuzz-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    static std::string made = pattern;
    std::atexit([] { static_cast<void>(std::system(("rm -rf " + made).c_str())); });
    return pattern;
  }();
  std::string path = kFolder + "/input" + std::string(ending);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// The first byte chooses one of so many: 'A' the first one.
std::size_t Choose(std::string_view& bytes, std::size_t of) {
  if (bytes.empty()) {
    return 0;
  }
  const auto first = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  return (static_cast<std::size_t>(first) + 256 - 'A') % 256 % of;
}

// A line of the job protocol: what is understood has nothing in it that would break a report.
bool RunJobLine(std::string_view bytes) {
  const Result<supervisor::JobLine> line = supervisor::ParseJobLine(bytes);
  if (!line.ok()) {
    CHECK(!line.error().message.empty());
    CHECK(!supervisor::ErrorLine(line.error().message).empty());
    return false;
  }
  v1::AttemptReport report;
  report.set_note(line.value().text);
  v1::AttemptReport again;
  CHECK(again.ParseFromString(report.SerializeAsString()));
  return true;
}

bool RunJobFile(std::string_view bytes) {
  v1::JobRequest job;
  const Status read = requests::ReadJobFile(FileOf(bytes, ".toml"), job);
  v1::JobRequest again;
  CHECK(!read.ok() || again.ParseFromString(job.SerializeAsString()));
  return read.ok();
}

std::vector<std::string> JobOptionSeeds() {
  std::vector<std::string> seeds;
  for (std::size_t i = 0; i < requests::JobOptions().size(); ++i) {
    for (const char* const value :
         {"1", "2h", "0.5", "a=b", "true", "A100,V100", "/a:/b:ro", "0-9%2", "afterok:1",
          "d=/data:10", "per-gpu", "torchrun", "now+1hour", "1-12:00:00", "forward=0.1,load=2"}) {
      seeds.push_back(static_cast<char>('A' + i) + std::string(value));
    }
  }
  return seeds;
}

// A flag of a job on the command line.
bool RunJobOption(std::string_view bytes) {
  const std::span<const requests::JobOption> options = requests::JobOptions();
  const requests::JobOption& option = options[Choose(bytes, options.size())];
  v1::JobRequest job;
  const Status set = requests::SetJobOption(option.key, std::string(bytes), job);
  static_cast<void>(requests::ReadTime(bytes, 1.8e9));
  return set.ok();
}

// A script with #SBATCH lines, until it would be sent: what is refused says why, and what is taken
// is a command.
bool RunScript(std::string_view bytes) {
  v1::JobRequest job;
  Result<requests::BatchScript> script = requests::BatchScript::Read(FileOf(bytes, ".sh"), job);
  if (!script.ok()) {
    CHECK(!script.error().message.empty());
    return false;
  }
  script.value().SetCommand({"argument"}, job);
  CHECK(job.launch().command_size() > 1);
  static_cast<void>(script.value().AtLine(Failed("the array asks for GPUs"), {}));
  return true;
}

std::vector<std::string> ScriptSeeds() {
  return {
      "#!/bin/bash\n#SBATCH --job-name=sweep -p long\n#SBATCH --chdir=.\n#SBATCH --time=0:10:00\n"
      "#SBATCH --nodes=2 --ntasks-per-node=4\n#SBATCH --gpus-per-node=v100:4,mps:50\n"
      "#SBATCH --array=0-3%2\n#SBATCH --output=out_%A_%4a.out\n#SBATCH --error=/tmp/%x-%j_%N.err\n"
      "#SBATCH --mail-type=END,FAIL --export=NONE,A=b\nsrun -l python3 train.py\n",
      "#!/bin/sh -e\n\n# text\n#SBATCH -J a -N1 -n1 -G1 -t 30 -d afterok:3 -b now+1hour -H\n"
      "#SBATCH --gres=gpu:a100:1(S:0-1),lscratch:3 -o '%u %t'\nX=$(scontrol show hostnames)\n",
      "#!/usr/bin/env python3\n#SBATCH --gpus=2 --time=UNLIMITED\n"};
}

// The words of a command line, a line each: it is parsed and not run.
bool RunCommandLine(std::string_view bytes) {
  std::vector<std::string> words;
  std::istringstream lines{std::string(bytes)};
  for (std::string word; std::getline(lines, word);) {
    if (word.starts_with("--config")) {  // another target's, and it would read any file
      return false;
    }
    words.push_back(word);
  }
  cli::CommandLine line(std::move(words));
  const cli::CommandLine::Outcome parsed = line.Parse();
  CHECK(parsed.runs || !parsed.out.empty() || !parsed.errors.empty());
  for (const char* const of_a_library : {"basic_string", "std::", "vector::", "_M_", "stoi", "stod",
                                         "stoul", "json.exception", "regex_error"}) {
    CHECK(parsed.errors.find(of_a_library) == std::string::npos ||
          bytes.find(of_a_library) != std::string_view::npos);
  }
  return parsed.runs;
}

std::vector<std::string> CommandLineSeeds() {
  return {"submit\n--gpus\n2\n--time\n4h\n--name\nbert\n--\npython3\ntrain.py",
          "submit\n--gpus\n1\n--partition\nlong\na.sh",
          "submit\n--array\n0-9%2\n--begin\nnow+1hour\ntrain.sh",
          "run\n--pty\n--gpus\n1\n-p\nlong\nbash",
          "status\n1,2\n--user\nann\n--state\nwaiting,running",
          "cancel\n12_[3-9]",
          "drain\nn[0-2],v0\n--reason\nfan",
          "update\n--time\n8h\n--begin\n\n12",
          "wait\n12\n--timeout\n1:30:00",
          "scontrol\nshow\njob\n3",
          "simulate\ntrace.csv\n--cluster\n2x4\n--policy\nlas:quantum=10m\n--json",
          "controller\n--cluster\n2x4\n--lease\n90s\n--grace\n10h",
          "agent\n--controller\nhead:7077\n--gpus\n8\n--data-cache\n200GB",
          "trace\ngenerate\n--jobs\n1e3\n--seed\n1",
          "sweep\nexperiment.toml",
          "profile\nstages\n--model\nbert\n--\npython3\ntrain.py",
          "help\nsubmit",
          "--version"};
}

bool RunConfig(std::string_view bytes) {
  CLI::App program;
  program.set_config("--config");
  double lease = 60;
  std::string text;
  std::vector<std::string> list;
  CLI::App* const controller = program.add_subcommand("controller");
  controller->add_option("--lease", lease);
  controller->add_option("--listen", text);
  controller->add_option("--profiles", list);
  bool flag = false;
  controller->add_flag("--check-config", flag);
  program.add_subcommand("agent")->add_option("--node", text);
  try {
    std::istringstream input{std::string(bytes)};
    static_cast<void>(cli::ConfigFile(program).from_config(input));
  } catch (const CLI::Error&) {  // how CLI11 says that a file is wrong
    return false;
  }
  return true;
}

bool RunTrace(std::string_view bytes) {
  const std::span<const trace::TraceFormat> formats = trace::TraceFormats();
  const bool by_content = bytes.starts_with('?');
  const std::size_t format = Choose(bytes, formats.size());
  trace::TraceOptions options;
  options.skip_bad_rows = by_content || format % 2 == 0;
  options.format = by_content ? std::string() : std::string(formats[format].name);
  if (bytes.starts_with("map=")) {  // as --map says
    options.columns = bytes.substr(4, std::min(bytes.find('\n'), bytes.size()) - 4);
    bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size() - 1) + 1);
  }
  return trace::ReadTrace(FileOf(bytes, ".txt"), options).ok();
}

bool RunCluster(std::string_view bytes) {
  constexpr std::array<std::string_view, 4> kEndings{".toml", ".csv", ".ini", ".xml"};
  const std::size_t kind = Choose(bytes, kEndings.size() + 1);
  return trace::ReadCluster(kind < kEndings.size() ? FileOf(bytes, kEndings[kind])
                                                   : std::string(bytes))
      .ok();
}

bool RunPreset(std::string_view bytes) {
  // A file is read once in the life of the program.
  static unsigned long number = 0;
  const std::string path = FileOf(bytes, "-" + std::to_string(++number) + ".toml");
  const bool good =
      scenario::ResolvePreset(
          {.preset = path, .policy = "fifo", .placement = "consolidated", .admission = "all"})
          .ok();
  static_cast<void>(std::remove(path.c_str()));
  return good;
}

bool RunProfiles(std::string_view bytes) {
  return profile::ThroughputTable::Read(FileOf(bytes, ".csv")).ok();
}

// As it comes with a call; and with the signature of the controller, so that what it claims is
// read.
bool RunToken(std::string_view bytes) {
  static const identity::KeyPair kKey = identity::KeyPair::Make();
  const identity::TokenCheck check{.public_key = kKey.public_key(), .cluster = "c", .now = 10};
  CHECK(!identity::ReadToken(bytes, check).ok());
  v1::TokenClaims claims;
  if (!claims.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return false;
  }
  const Result<v1::TokenClaims> as_is =
      identity::ReadToken(identity::SignToken(kKey, claims), check);
  CHECK(!as_is.ok() || (as_is.value().cluster() == check.cluster &&
                        as_is.value().expires() > check.now && as_is.value().has_caller()));
  // And at a time when it holds, so that the rest is looked at.
  claims.set_cluster(check.cluster);
  claims.set_issued(check.now - 1);
  claims.set_expires(check.now + 1);
  const Result<v1::TokenClaims> read =
      identity::ReadToken(identity::SignToken(kKey, claims), check);
  CHECK(!read.ok() || (!read.value().caller().user().empty() &&
                       identity::RoleName(read.value().caller().role()) != "nobody" &&
                       !identity::NameOf(read.value().caller()).empty()));
  return read.ok();
}

const google::protobuf::Message* AsToken(unsigned /*kind*/) {
  return &v1::TokenClaims::default_instance();
}

std::vector<std::string> TokenSeeds() {
  v1::TokenClaims claims;
  claims.mutable_caller()->set_user("ann");
  claims.mutable_caller()->set_uid(1001);
  claims.mutable_caller()->set_role(v1::Caller::USER);
  claims.set_issued(1);
  claims.set_expires(100);
  claims.set_cluster("c");
  claims.set_nonce("n");
  return {claims.SerializeAsString(), identity::SignToken(identity::KeyPair::Make(), claims)};
}

// What the launcher reads as root: one credential has one text.
bool RunCredential(std::string_view bytes) {
  const Result<launcher::SignedCredential> read = launcher::ReadCredential(bytes);
  if (read.ok()) {
    CHECK(read.value().credential.ToText() == read.value().text);
    CHECK(launcher::WithSignature(read.value().text, read.value().signature) == bytes);
  }
  return read.ok();
}

std::vector<std::string> CredentialSeeds() {
  constexpr std::size_t kSignature = 64;
  constexpr std::size_t kDigest = 64;
  const launcher::Credential credential{.job = 7,
                                        .attempt = 2,
                                        .user = "ann",
                                        .uid = 1001,
                                        .node = "n1",
                                        .gpus = {0, 1},
                                        .epoch = 5,
                                        .expires = 1'790'000'000,
                                        .launch = std::string(kDigest, 'a')};
  return {launcher::WithSignature(credential.ToText(), std::string(kSignature, 's'))};
}

constexpr std::array kTargets{
    Target{"controller", RunController, ControllerSeeds, ToController, kControllerKinds},
    Target{"agent", RunAgent, AgentSeeds, ToAgent, kAgentKinds},
    Target{"token", RunToken, TokenSeeds, AsToken},
    Target{"credential", RunCredential, CredentialSeeds},
    Target{"job-line", RunJobLine},
    Target{"job-file", RunJobFile},
    Target{"job-option", RunJobOption, JobOptionSeeds},
    Target{"script", RunScript, ScriptSeeds},
    Target{"command-line", RunCommandLine, CommandLineSeeds},
    Target{"config", RunConfig},
    Target{"trace", RunTrace},
    Target{"cluster", RunCluster},
    Target{"preset", RunPreset},
    Target{"profiles", RunProfiles}};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* Find(std::string_view name) {
  const auto* const found = std::find_if(kTargets.begin(), kTargets.end(),
                                         [name](const Target& at) { return at.name == name; });
  return found == kTargets.end() ? nullptr : found;
}

std::vector<Record> RecordsOf(std::string_view bytes) {
  constexpr std::size_t kHead = 3;
  constexpr unsigned kByte = 256;
  std::vector<Record> records;
  while (bytes.size() >= kHead) {
    const auto at = [bytes](std::size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(bytes[i]));
    };
    const std::size_t length = std::min<std::size_t>(at(1) + kByte * at(2), bytes.size() - kHead);
    records.push_back({.kind = at(0), .bytes = bytes.substr(kHead, length)});
    bytes.remove_prefix(kHead + length);
  }
  return records;
}

void AddRecord(unsigned kind, const std::string& bytes, std::string& to) {
  constexpr unsigned kBits = 8;
  constexpr unsigned kMask = 255;
  CHECK(bytes.size() >> (2 * kBits) == 0);
  to += static_cast<char>(kind);
  to += static_cast<char>(bytes.size() & kMask);
  to += static_cast<char>(bytes.size() >> kBits);
  to += bytes;
}

}  // namespace trainyard::fuzz
