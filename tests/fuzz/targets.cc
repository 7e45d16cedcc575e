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
#include "cli/live/config/config_file.h"
#include "cli/live/job_file.h"
#include "identity/keys.h"
#include "identity/token.h"
#include "launcher/credential.h"
#include "profile/throughput_table.h"
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
  const Status read = cli::ReadJobFile(FileOf(bytes, ".toml"), job);
  v1::JobRequest again;
  CHECK(!read.ok() || again.ParseFromString(job.SerializeAsString()));
  return read.ok();
}

std::vector<std::string> JobOptionSeeds() {
  std::vector<std::string> seeds;
  for (std::size_t i = 0; i < cli::JobOptions().size(); ++i) {
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
  const std::span<const cli::JobOption> options = cli::JobOptions();
  const cli::JobOption& option = options[Choose(bytes, options.size())];
  v1::JobRequest job;
  const Status set = cli::SetJobOption(option.key, std::string(bytes), job);
  static_cast<void>(cli::ParseTime(bytes));
  return set.ok();
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
