// SPDX-License-Identifier: Apache-2.0
#include "trainyard/state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trainyard::base {
namespace {

enum class Colour : std::uint8_t { kRed, kBlue = 200 };

struct Inner {
  int number = 0;
  std::vector<bool> flags;
  void Serialize(StateStream& state) { state(number, flags); }
  friend bool operator==(const Inner&, const Inner&) = default;
};

struct Everything {
  bool flag = true;
  std::int8_t small = -128;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::vector<double> doubles{0.0, 1.0, -0.1, 1e300, std::numeric_limits<double>::infinity()};
  std::string text{"a\0\xff", 3};
  Colour colour = Colour::kBlue;
  JobId job = JobAt(300);
  Duration time{-5};
  TimePoint end = kEndOfTime;
  std::optional<int> none;
  std::optional<Inner> some{{.number = -1, .flags = {true, false, true}}};
  std::pair<int, std::string> pair{7, "seven"};
  std::tuple<NodeId, int, bool> tuple{NodeAt(3), -3, true};
  std::array<double, 2> array{2.5, -2.5};
  std::set<std::string> set{"a", "b"};
  std::map<std::string, std::vector<Inner>> map{{"x", {{.number = 1}, {}}}, {"y", {}}};
  std::shared_ptr<const Inner> nothing;
  Grant grant{.gpus = 2, .slices = {{.node = NodeAt(1), .gpus = 3}}, .group = {JobAt(1)}};
  void Serialize(StateStream& state) {
    state(flag, small, least, most, doubles, text, colour, job, time, end, none, some, pair, tuple,
          array, set, map, nothing, grant);
  }
  friend bool operator==(const Everything&, const Everything&) = default;
};

Everything Other() {
  Everything other;
  other = {.flag = false, .small = 0, .least = 1, .most = 2, .doubles = {9}, .text = "other"};
  other.none = 4;
  other.some.reset();
  other.set = {"z"};
  other.map = {{"z", {{}}}};
  other.grant = {};
  return other;
}

TEST(StateStreamTest, GivesBackWhatWasWritten) {
  Everything written;
  StateStream out;
  out(written);
  Everything read = Other();
  StateStream in{out.bytes()};
  in(read);
  EXPECT_TRUE(in.complete());
  EXPECT_TRUE(read == written);
}

TEST(StateStreamTest, KeepsTheBitsOfDoubles) {
  for (double value : {-0.0, std::nan("7"), std::numeric_limits<double>::denorm_min(), 0.1}) {
    StateStream out;
    out(value);
    double read = 1;
    StateStream in{out.bytes()};
    in(read);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(value));
  }
}

TEST(StateStreamTest, WritesSmallAndRoundNumbersShort) {
  for (const auto& [value, bytes] : {std::pair{0.0, 1U}, std::pair{1.0, 3U}, std::pair{0.1, 10U}}) {
    double copy = value;
    StateStream out;
    out(copy);
    EXPECT_LE(out.bytes().size(), bytes) << value;
  }
  int number = -64;
  StateStream out;
  out(number);
  EXPECT_EQ(out.bytes().size(), 1U);
}

TEST(StateStreamTest, SharedObjectsAreCopied) {
  struct Holder {
    std::shared_ptr<const Inner> inner;
    void Serialize(StateStream& state) { state(inner); }
  };
  const auto inner = std::make_shared<const Inner>(Inner{.number = 2});
  std::pair<Holder, Holder> written{{inner}, {inner}};
  StateStream out;
  out(written);
  std::pair<Holder, Holder> read;
  StateStream in{out.bytes()};
  in(read);
  ASSERT_NE(read.first.inner, nullptr);
  ASSERT_NE(read.second.inner, nullptr);
  EXPECT_EQ(*read.first.inner, *inner);
  EXPECT_EQ(*read.second.inner, *inner);
  EXPECT_NE(read.first.inner, read.second.inner);
}

TEST(StateStreamTest, NoticesThatSomethingIsMissing) {
  Everything written;
  StateStream out;
  out(written);
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    Everything read;
    StateStream in{std::string_view(out.bytes()).substr(0, size)};
    in(read);
    EXPECT_FALSE(in.good()) << size;
  }
}

TEST(StateStreamTest, NoticesThatSomethingIsLeft) {
  int number = 1;
  StateStream out;
  out(number, number);
  StateStream in{out.bytes()};
  in(number);
  EXPECT_TRUE(in.good());
  EXPECT_FALSE(in.complete());
}

// A length that is wrong must not ask for more memory than there are bytes.
TEST(StateStreamTest, RefusesLengthsThatCannotBe) {
  std::uint64_t size = std::numeric_limits<std::uint64_t>::max();
  StateStream out;
  out(size);
  std::vector<int> numbers;
  StateStream in{out.bytes()};
  in(numbers);
  EXPECT_FALSE(in.good());
  EXPECT_TRUE(numbers.empty());
}

}  // namespace
}  // namespace trainyard::base
