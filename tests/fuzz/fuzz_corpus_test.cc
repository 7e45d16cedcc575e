// SPDX-License-Identifier: Apache-2.0
// Every input of corpus/ and every seed, by the targets that libFuzzer runs, without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/mutate.h"
#include "fuzz/targets.h"

namespace trainyard::fuzz {
namespace {

namespace fs = std::filesystem;

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The inputs of a target by their names.
std::vector<std::pair<std::string, std::string>> InputsOf(const Target& target) {
  std::vector<std::pair<std::string, std::string>> inputs;
  const fs::path folder = fs::path(TRAINYARD_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
  if (fs::exists(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      inputs.emplace_back(entry.path().filename().string(), BytesOf(entry.path()));
    }
  }
  for (const std::string& seed : target.seeds ? target.seeds() : std::vector<std::string>()) {
    inputs.emplace_back("seed", seed);
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

TEST(FuzzCorpus, NoInputBreaksItsTarget) {
  for (const Target& target : Targets()) {
    const auto inputs = InputsOf(target);
    EXPECT_FALSE(inputs.empty()) << target.name;
    for (const auto& [name, bytes] : inputs) {
      SCOPED_TRACE(std::string(target.name) + "/" + name);
      target.run(bytes);
    }
  }
}

// Else they would show nothing but how bytes of no meaning are refused. What has been found may be.
TEST(FuzzCorpus, InputsToBeginWithAreUnderstood) {
  for (const Target& target : Targets()) {
    int understood = 0;
    int seeds = 0;
    for (const auto& [name, bytes] : InputsOf(target)) {
      const bool good = target.run(bytes);
      understood += good ? 1 : 0;
      seeds += name == "seed" ? 1 : 0;
      EXPECT_TRUE(good || name == "seed" || name.starts_with("found-"))
          << target.name << "/" << name;
    }
    EXPECT_TRUE(seeds == 0 || understood >= 1) << target.name;
  }
}

// What a cut, a doubled or a damaged input does: a little of what libFuzzer does, in each build.
TEST(FuzzCorpus, NorDoesOneThatIsDamaged) {
  constexpr std::size_t kMostChanges = 64;
  for (const Target& target : Targets()) {
    for (const auto& [name, bytes] : InputsOf(target)) {
      SCOPED_TRACE(std::string(target.name) + "/" + name);
      target.run(bytes + bytes);
      const std::size_t stride = std::max<std::size_t>(1, bytes.size() / kMostChanges);
      for (std::size_t at = 0; at < bytes.size(); at += stride) {
        target.run(bytes.substr(0, at));
        std::string changed = bytes;
        changed[at] = static_cast<char>(~changed[at]);
        target.run(changed);
      }
    }
  }
}

// Inputs that are messages, changed as such: a little of what ./dev prove fuzz does.
TEST(FuzzCorpus, NorDoesAnotherMessageAndMostAreUnderstood) {
  constexpr std::size_t kMost = 4096;
  constexpr std::uint32_t kRounds = 300;
  for (const Target& target : Targets()) {
    if (target.message == nullptr) {
      continue;
    }
    std::string input = target.seeds().front();
    std::uint32_t understood = 0;
    for (std::uint32_t seed = 1; seed <= kRounds; ++seed) {
      Mutator mutator(seed, [seed](std::string bytes, std::size_t most) {
        bytes += static_cast<char>('0' + seed % 10);
        return bytes.substr(0, most);
      });
      const std::string changed = mutator.Changed(target, input, kMost);
      ASSERT_LE(changed.size(), kMost);
      SCOPED_TRACE(std::string(target.name) + ", seed " + std::to_string(seed));
      const bool good = target.run(changed);
      understood += good ? 1 : 0;
      input = good ? changed : target.seeds().front();
    }
    EXPECT_GT(understood, kRounds / 4) << target.name;
  }
}

TEST(FuzzCorpus, CallsAndReportsAreUnderstoodAsMessages) {
  EXPECT_GT(RecordsOf(ControllerSeeds().front()).size(), 15U);
  EXPECT_GT(RecordsOf(AgentSeeds().front()).size(), 5U);
}

}  // namespace
}  // namespace trainyard::fuzz
