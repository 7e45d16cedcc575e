// SPDX-License-Identifier: Apache-2.0
// What ./dev prove fuzz starts: libFuzzer with the target that TRAINYARD_FUZZ_TARGET names. With
// TRAINYARD_FUZZ_SEEDS=FOLDER it writes that target's seeds there and ends. After
// TRAINYARD_FUZZ_CPU=SECONDS of CPU time it says how many of the inputs were understood, and ends.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "fuzz/mutate.h"
#include "fuzz/targets.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

const trainyard::fuzz::Target* target = nullptr;
unsigned long inputs = 0;
unsigned long understood = 0;

std::clock_t most_cpu = 0;  // 0: any

void EndInTime() {
  constexpr unsigned long kBetween = 64;  // inputs
  if (most_cpu == 0 || inputs % kBetween != 0 || std::clock() < most_cpu) {
    return;
  }
  std::fprintf(stderr, "understood: %lu of %lu, in %ld s\n", understood, inputs,
               static_cast<long>(std::clock() / CLOCKS_PER_SEC));
  most_cpu = 0;
  static_cast<void>(std::raise(SIGUSR1));  // libFuzzer tells what it has done, and ends
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* const name = std::getenv("TRAINYARD_FUZZ_TARGET");
  target = name == nullptr ? nullptr : trainyard::fuzz::Find(name);
  if (target == nullptr) {
    for (const trainyard::fuzz::Target& known : trainyard::fuzz::Targets()) {
      std::printf("%.*s\n", static_cast<int>(known.name.size()), known.name.data());
    }
    std::exit(name == nullptr ? 0 : 2);
  }
  if (const char* const folder = std::getenv("TRAINYARD_FUZZ_SEEDS"); folder != nullptr) {
    int number = 0;
    for (const std::string& seed :
         target->seeds == nullptr ? std::vector<std::string>() : target->seeds()) {
      std::ofstream(std::string(folder) + "/seed-" + std::to_string(++number)) << seed;
    }
    std::exit(0);
  }
  if (const char* const seconds = std::getenv("TRAINYARD_FUZZ_CPU"); seconds != nullptr) {
    most_cpu = std::atol(seconds) * CLOCKS_PER_SEC;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ++inputs;
  understood += target->run({reinterpret_cast<const char*>(data), size}) ? 1 : 0;
  EndInTime();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  trainyard::fuzz::Mutator mutator(seed, [](std::string bytes, std::size_t longest) {
    const std::size_t before = bytes.size();
    bytes.resize(std::max(before, longest));
    bytes.resize(
        LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), before, bytes.size()));
    return bytes;
  });
  const std::string changed =
      mutator.Changed(*target, {reinterpret_cast<const char*>(data), size}, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
