// SPDX-License-Identifier: Apache-2.0
// What ./dev fuzz starts: libFuzzer with the target that TRAINYARD_FUZZ_TARGET names. With
// TRAINYARD_FUZZ_SEEDS=FOLDER it writes that target's seeds there and ends.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fuzz/targets.h"

namespace {

const trainyard::fuzz::Target* target = nullptr;

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
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
