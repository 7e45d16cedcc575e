// SPDX-License-Identifier: Apache-2.0
// State to bytes and back, by one function for both ways: a class names its members once, and what
// is written is what is read. Integers are of variable length, doubles keep their bits; nothing in
// the bytes says what they are, so they are for programs of the same version.
//
//   struct Queues final : Memory {
//     void Serialize(StateStream& state) override { state(levels_, last_); }
//   };
//
// A struct takes part with a member `void Serialize(StateStream&)`, or a function
// `void Serialize(StateStream&, T&)` in its own namespace.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/metric.h"
#include "trainyard/plan.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

class StateStream {
 public:
  // Writes: bytes() has what was exchanged.
  StateStream() = default;
  // Reads; the bytes must outlive it.
  explicit StateStream(std::string_view bytes) : reading_(true), rest_(bytes) {}
  StateStream(const StateStream&) = delete;
  StateStream& operator=(const StateStream&) = delete;

  [[nodiscard]] bool reading() const { return reading_; }
  // Reading: whether everything could be what was written. What is read after the first thing that
  // cannot is 0 and empty.
  [[nodiscard]] bool good() const { return good_; }
  // All has been read, and nothing is left.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }
  void Fail() {
    good_ = false;
    rest_ = {};
  }
  // Writing.
  [[nodiscard]] const std::string& bytes() const { return out_; }
  [[nodiscard]] std::string TakeBytes() { return std::move(out_); }

  template <typename... T>
  void operator()(T&... values) {
    (One(values), ...);
  }

  // How many elements follow. Reading: fails if there cannot be so many, each of a byte or more.
  [[nodiscard]] std::size_t Size(std::size_t size) {
    std::uint64_t number = size;
    Number(number);
    if (reading_ && number > rest_.size()) {
      Fail();
      return 0;
    }
    return static_cast<std::size_t>(number);
  }

 private:
  void Number(std::uint64_t& value) {
    if (!reading_) {
      std::uint64_t left = value;
      for (; left >= 128; left >>= 7) {
        out_ += static_cast<char>((left & 127) | 128);
      }
      out_ += static_cast<char>(left);
      return;
    }
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Byte());
      value |= static_cast<std::uint64_t>(byte & 127U) << shift;
      if (byte < 128) {
        return;
      }
    }
    Fail();
  }
  char Byte() {
    if (rest_.empty()) {
      Fail();
      return 0;
    }
    const char byte = rest_.front();
    rest_.remove_prefix(1);
    return byte;
  }

  template <typename T>
  requires std::integral<T>
  void One(T& value) {
    // NOLINTBEGIN(bugprone-signed-char-misuse): small numbers, not characters
    auto bits = static_cast<std::uint64_t>(value);
    if constexpr (std::is_signed_v<T>) {  // small numbers of both signs are short
      const auto number = static_cast<std::int64_t>(value);
      // NOLINTEND(bugprone-signed-char-misuse)
      bits = (static_cast<std::uint64_t>(number) << 1) ^ (number < 0 ? ~std::uint64_t{0} : 0);
    }
    Number(bits);
    if (!reading_) {
      return;
    }
    if constexpr (std::is_signed_v<T>) {
      bits = (bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0);
    }
    value = static_cast<T>(bits);
  }
  template <typename T>
  requires std::is_enum_v<T>
  void One(T& value) {
    auto number = static_cast<std::underlying_type_t<T>>(value);
    One(number);
    value = static_cast<T>(number);
  }
  // The bytes of round numbers end in zeros: those first, they cost little.
  void One(double& value) {
    std::uint64_t bits = __builtin_bswap64(std::bit_cast<std::uint64_t>(value));
    Number(bits);
    value = std::bit_cast<double>(__builtin_bswap64(bits));
  }
  void One(std::string& text) {
    const std::size_t size = Size(text.size());
    if (reading_) {
      text = rest_.substr(0, size);
      rest_.remove_prefix(size);
    } else {
      out_ += text;
    }
  }
  void One(Duration& value) {
    std::int64_t micros = value.count();
    One(micros);
    value = Duration{micros};
  }
  void One(TimePoint& value) {
    std::int64_t micros = value.time_since_epoch().count();
    One(micros);
    value = TimePoint{Duration{micros}};
  }
  template <typename T>
  void One(std::optional<T>& value) {
    bool has = value.has_value();
    One(has);
    if (reading_) {
      value.reset();
      if (has) {
        value.emplace();
      }
    }
    if (has) {
      One(*value);
    }
  }
  // What is pointed to belongs to the pointer alone; sharing is not kept.
  template <typename T>
  void One(std::shared_ptr<T>& value) {
    bool has = value != nullptr;
    One(has);
    if (reading_) {
      value.reset();
      if (has) {
        const auto read = std::make_shared<std::remove_const_t<T>>();
        One(*read);
        value = read;
      }
    } else if (has) {
      One(const_cast<std::remove_const_t<T>&>(*value));  // NOLINT: it is only written
    }
  }
  template <typename A, typename B>
  void One(std::pair<A, B>& value) {
    One(value.first);
    One(value.second);
  }
  template <typename... T>
  void One(std::tuple<T...>& value) {
    std::apply([this](T&... members) { (One(members), ...); }, value);
  }
  template <typename T, std::size_t N>
  void One(std::array<T, N>& values) {
    for (T& value : values) {
      One(value);
    }
  }
  template <typename T>
  void One(std::vector<T>& values) {
    std::size_t size = Size(values.size());
    if (!reading_) {
      for (std::size_t i = 0; i < size; ++i) {
        T value = values[i];  // also where T is bool
        One(value);
      }
      return;
    }
    values.clear();
    for (; size > 0 && good_; --size) {
      T value{};
      One(value);
      values.push_back(std::move(value));
    }
  }
  template <typename T, typename Less>
  void One(std::set<T, Less>& values) {
    std::size_t size = Size(values.size());
    if (!reading_) {
      for (T value : values) {
        One(value);
      }
      return;
    }
    values.clear();
    for (; size > 0 && good_; --size) {
      T value{};
      One(value);
      values.insert(values.end(), std::move(value));
    }
  }
  template <typename K, typename V, typename Less>
  void One(std::map<K, V, Less>& values) {
    std::size_t size = Size(values.size());
    if (!reading_) {
      for (auto& [key, value] : values) {
        K copy = key;
        One(copy);
        One(value);
      }
      return;
    }
    values.clear();
    for (; size > 0 && good_; --size) {
      K key{};
      One(key);
      One(values[std::move(key)]);
    }
  }
  template <typename T>
  requires std::is_class_v<T>
  void One(T& value) {
    if constexpr (requires { value.Serialize(*this); }) {
      value.Serialize(*this);
    } else {
      Serialize(*this, value);
    }
  }

  bool reading_ = false;
  bool good_ = true;
  std::string_view rest_;
  std::string out_;
};

inline void Serialize(StateStream& state, Resources& of) {
  state(of.milli_cpus, of.memory_mib, of.storage_kbps);
}
inline void Serialize(StateStream& state, Slice& of) {
  state(of.node, of.gpus, of.soft, of.loader_workers);
}
inline void Serialize(StateStream& state, Grant& of) {
  state(of.gpus, of.slices, of.sharing, of.group, of.running);
}
inline void Serialize(StateStream& state, Blocked& of) {
  state(of.first, of.gpus, of.reason, of.kind);
}
inline void Serialize(StateStream& state, Demand& of) {
  state(of.job, of.gpus, of.may_split, of.slices, of.sharing, of.partners, of.preferred, of.running,
        of.restart, of.credit);
}
inline void Serialize(StateStream& state, Metric& of) { state(of.name, of.value); }
inline void Serialize(StateStream& state, StageTimes& of) { state(of.iteration, of.stages); }
inline void Serialize(StateStream& state, SoftDeadline& of) { state(of.at, of.value); }
inline void Serialize(StateStream& state, DataSet& of) { state(of.name, of.mib, of.home); }

}  // namespace trainyard
