// SPDX-License-Identifier: Apache-2.0
#include "base/python_random.h"

#include <bit>
#include <vector>

#include "base/check.h"

namespace trainyard::base {
namespace {

// Fills the state of std::mt19937 as init_by_array of Matsumoto and Nishimura's mt19937ar does,
// whose key is the seed in 32-bit words, the lowest first. The engine asks for nothing else.
class InitByArray {
 public:
  using result_type = std::uint_least32_t;

  explicit InitByArray(std::uint64_t seed) : key_{static_cast<std::uint32_t>(seed)} {
    if (const std::uint64_t high = seed >> 32U; high != 0) {
      key_.push_back(static_cast<std::uint32_t>(high));
    }
  }

  template <typename Iterator>
  void generate(Iterator begin, Iterator end) const {
    const std::vector<std::uint32_t> state = State(static_cast<std::uint32_t>(end - begin));
    for (const std::uint32_t word : state) {
      *begin++ = word;
    }
  }

 private:
  static std::uint32_t Mix(std::uint32_t word, std::uint32_t factor) {
    return (word ^ (word >> 30U)) * factor;
  }

  [[nodiscard]] std::vector<std::uint32_t> State(std::uint32_t size) const {
    std::vector<std::uint32_t> state(size);
    state[0] = 19650218;
    for (std::uint32_t i = 1; i < size; ++i) {
      state[i] = Mix(state[i - 1], 1812433253) + i;
    }
    std::uint32_t at = 1;
    const auto next = [&] {
      if (++at == size) {
        state[0] = state[size - 1];
        at = 1;
      }
    };
    for (std::uint32_t round = 0; round < size; ++round) {
      const auto from = round % static_cast<std::uint32_t>(key_.size());
      state[at] = (state[at] ^ Mix(state[at - 1], 1664525)) + key_[from] + from;
      next();
    }
    for (std::uint32_t round = 1; round < size; ++round) {
      state[at] = (state[at] ^ Mix(state[at - 1], 1566083941)) - at;
      next();
    }
    state[0] = 0x80000000U;
    return state;
  }

  std::vector<std::uint32_t> key_;
};

std::mt19937 EngineOf(std::uint64_t seed) {
  InitByArray state(seed);
  return std::mt19937(state);
}

}  // namespace

PythonRandom::PythonRandom(std::uint64_t seed) : seed_(seed), engine_(EngineOf(seed)) {}

std::uint32_t PythonRandom::Draw() {
  ++draws_;
  return static_cast<std::uint32_t>(engine_());
}

void PythonRandom::Serialize(StateStream& state) {
  state(seed_, draws_);
  if (state.reading()) {
    engine_ = EngineOf(seed_);
    engine_.discard(draws_);
  }
}

double PythonRandom::Random() {
  const auto high = static_cast<double>(Draw() >> 5U);
  const auto low = static_cast<double>(Draw() >> 6U);
  return (high * 0x1p26 + low) * 0x1p-53;
}

std::uint32_t PythonRandom::Below(std::uint32_t count) {
  CHECK(count > 0);
  const int surplus = std::countl_zero(count);
  while (true) {
    const auto drawn = Draw() >> static_cast<unsigned>(surplus);
    if (drawn < count) {
      return drawn;
    }
  }
}

}  // namespace trainyard::base
