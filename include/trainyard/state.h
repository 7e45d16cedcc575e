// SPDX-License-Identifier: Apache-2.0
// State to bytes and back, by one function for both ways: a class names its members once, and what
// is written is what is read. Integers are of variable length, doubles keep their bits; nothing in
// the bytes says what they are, so they are for programs of the same version.
//
//   struct Queues final : Memory {
//     std::map<JobId, int> levels;
//     std::optional<TimePoint> last;
//     void Serialize(StateStream& state) override { state(levels, last); }
//   };
//
// Known are integers, bool, enumerations (ids among them), double, std::string, Duration and
// TimePoint; pairs, tuples and std::array; optionals and shared pointers; vectors, sets and maps of
// all these. A struct takes part with a member `void Serialize(StateStream&)`, or a function
// `void Serialize(StateStream&, T&)` in its own namespace. Those of the public headers that a
// Memory is likely to keep have one at the end of this header. Other types do not compile.
//
// A memory keeps ids and values, no pointers: after reading, jobs and grants are other objects.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "trainyard/job.h"
#include "trainyard/metric.h"
#include "trainyard/plan.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

// A stream in one of two directions. Not copied, and used by one thread. The cost is that of the
// values, about a byte for a small integer.
class StateStream {
 public:
  // Writes: bytes() has the values.
  StateStream() = default;
  // Reads. REQUIRES: the bytes outlive the stream.
  explicit StateStream(std::string_view bytes) : reading_(true), rest_(bytes) {}
  StateStream(const StateStream&) = delete;
  StateStream& operator=(const StateStream&) = delete;

  // Writes the values, or sets them to those read. Reading never fails halfway: from the first
  // value on that the bytes cannot hold, values are 0 and empty, and good() is false. Containers
  // are emptied first. A shared pointer is written with what it points to, so that two that share
  // it are read as two. Numbers that are read are not looked at: a Serialize that uses one as an
  // index checks it, and calls Fail().
  template <typename... T>
  void operator()(T&... values) {
    (One(values), ...);
  }

  // False: writing. For what follows from other values and is worked out after reading.
  [[nodiscard]] bool reading() const { return reading_; }
  // False: the bytes are not what was written. Writing: true.
  [[nodiscard]] bool good() const { return good_; }
  // Reading: all bytes are read, and good().
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }
  // How many fields jobs had in the program that wrote, or is to have written, the bytes: fields
  // and state that came later are passed over. Set before all else.
  [[nodiscard]] int job_fields() const { return job_fields_; }
  void SetJobFields(int fields) { job_fields_ = fields; }
  // For a Serialize that finds values which cannot be: the stream is not good() any more, and all
  // that is still read is 0 and empty. Whatever the bytes belong to is refused.
  void Fail();
  // Writing: what was written so far, valid until more is written. TakeBytes moves it out, after
  // which nothing more may be written.
  [[nodiscard]] const std::string& bytes() const { return out_; }
  [[nodiscard]] std::string TakeBytes() { return std::move(out_); }

  // For containers of other kinds: writes how many elements follow, or returns the number read.
  // Fails if the bytes left cannot hold so many, each of a byte or more.
  [[nodiscard]] std::size_t Size(std::size_t size);

 private:
  // Seven bits a byte, the lowest first; the eighth says that more follow.
  void Number(std::uint64_t& value);
  [[nodiscard]] bool Has(bool has) {
    One(has);
    return has;
  }
  template <typename T, typename From>
  void Set(T& value, From from) {
    if (reading_) {
      value = static_cast<T>(from);
    }
  }
  // For values that are only written: then One changes nothing.
  template <typename T>
  static T& Unconst(const T& value) {
    return const_cast<T&>(value);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }

  template <std::integral T>
  void One(T& value) {
    if constexpr (std::is_signed_v<T>) {  // small numbers of both signs are short
      const auto number = static_cast<std::int64_t>(value);  // NOLINT(bugprone-signed-char-misuse)
      auto bits = (static_cast<std::uint64_t>(number) << 1) ^ (number < 0 ? ~std::uint64_t{0} : 0);
      Number(bits);
      Set(value, (bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
    } else {
      auto bits = static_cast<std::uint64_t>(value);
      Number(bits);
      Set(value, bits);
    }
  }
  template <typename T>
  requires std::is_enum_v<T>
  void One(T& value) {
    auto number = static_cast<std::underlying_type_t<T>>(value);
    One(number);
    Set(value, number);
  }
  void One(double& value);
  void One(std::string& text);
  void One(Duration& value) {
    std::int64_t micros = value.count();
    One(micros);
    Set(value, micros);
  }
  void One(TimePoint& value) {
    Duration since_zero = value.time_since_epoch();
    One(since_zero);
    Set(value, since_zero);
  }
  template <typename T>
  void One(std::optional<T>& value) {
    if (!Has(value.has_value())) {
      value.reset();
      return;
    }
    if (reading_) {
      value.emplace();
    }
    One(*value);
  }
  template <typename T>
  void One(std::shared_ptr<T>& value) {
    if (!Has(value != nullptr)) {
      value.reset();
      return;
    }
    if (reading_) {
      value = std::make_shared<std::remove_const_t<T>>();
    }
    One(Unconst(*value));
  }
  template <typename T>
  requires std::is_class_v<T>
  void One(T& value) {
    if constexpr (requires { value.Serialize(*this); }) {
      value.Serialize(*this);
    } else if constexpr (requires { Serialize(*this, value); }) {
      Serialize(*this, value);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      std::apply([this](auto&... members) { (this->One(Unconst(members)), ...); }, value);
    } else {
      Elements(value);
    }
  }
  template <typename Container>
  void Elements(Container& values) {
    std::size_t size = Size(values.size());
    if (!reading_) {
      for (const auto& value : std::as_const(values)) {
        One(Unconst(value));
      }
      return;
    }
    values.clear();
    for (; size > 0 && good_; --size) {
      auto value = NewElement<Container>();
      One(value);
      values.insert(values.end(), std::move(value));
    }
  }
  template <typename Container>
  static auto NewElement() {
    if constexpr (requires { typename Container::mapped_type; }) {
      return std::pair<typename Container::key_type, typename Container::mapped_type>{};
    } else {
      return typename Container::value_type{};
    }
  }

  bool reading_ = false;
  bool good_ = true;
  int job_fields_ = std::numeric_limits<int>::max();
  std::string_view rest_;
  std::string out_;
};

// Structs of the public headers.
inline void Serialize(StateStream& state, Resources& of) {
  state(of.milli_cpus, of.memory_mib, of.storage_kbps);
}
inline void Serialize(StateStream& state, Slice& of) {
  state(of.node, of.gpus, of.soft, of.loader_workers);
}
inline void Serialize(StateStream& state, Grant& of) {
  state(of.gpus, of.slices, of.sharing, of.group, of.running);
}
inline void Serialize(StateStream& state, Demand& of) {
  state(of.job, of.gpus, of.may_split, of.slices, of.sharing, of.partners, of.preferred, of.running,
        of.restart, of.credit);
}
inline void Serialize(StateStream& state, StageTimes& of) { state(of.iteration, of.stages); }
inline void Serialize(StateStream& state, SoftDeadline& of) { state(of.at, of.value); }
inline void Serialize(StateStream& state, DataSet& of) { state(of.name, of.mib, of.home); }
inline void Serialize(StateStream& state, CpuRequest& of) { state(of.milli, of.per); }
inline void Serialize(StateStream& state, MemoryRequest& of) { state(of.mib, of.per); }
inline void Serialize(StateStream& state, TmpRequest& of) { state(of.mib); }
inline void Serialize(StateStream& state, NodeCount& of) { state(of.least, of.most); }
inline void Serialize(StateStream& state, NodeRequest& of) {
  state(of.cpus, of.memory, of.nodes, of.exclusive, of.tmp, of.node_list, of.exclude, of.constraint,
        of.licenses);
}
inline void Serialize(StateStream& state, Metric& of) { state(of.name, of.value); }

}  // namespace trainyard
