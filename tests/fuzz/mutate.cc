// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutate.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/text_check.h"

namespace trainyard::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kDeepest = 6;  // of messages within one another

// All messages that are in it, itself first.
void Collect(Message& message, std::vector<Message*>& all) {  // NOLINT(misc-no-recursion)
  all.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* const field : set) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    if (!field->is_repeated()) {
      Collect(*reflection.MutableMessage(&message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      Collect(*reflection.MutableRepeatedMessage(&message, field, i), all);
    }
  }
}

// One more of a field that may be there several times, and is no message.
void AddNothing(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.AddInt32(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.AddInt64(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.AddUInt32(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.AddUInt64(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.AddDouble(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.AddFloat(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.AddBool(&message, &field, false);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.AddEnumValue(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.AddString(&message, &field, "");
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

struct Word {
  std::size_t begin = 0;
  std::size_t size = 0;
  bool is_number = false;
};

// Numbers and names in a text, in their order.
std::vector<Word> WordsOf(std::string_view text) {
  const auto is_part = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c >= 0x80;
  };
  std::vector<Word> words;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    while (i < text.size() && is_part(static_cast<unsigned char>(text[i]))) {
      ++i;
    }
    if (i > begin) {
      words.push_back({.begin = begin,
                       .size = i - begin,
                       .is_number = base::ToNumber(text.substr(begin, i - begin)).has_value()});
    }
    i += i == begin ? 1 : 0;
  }
  return words;
}

}  // namespace

std::size_t Mutator::Below(std::size_t end) {
  return end == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
}

std::int64_t Mutator::Integer() {
  constexpr std::array<std::int64_t, 10> kCorners{0,
                                                  1,
                                                  2,
                                                  -1,
                                                  std::numeric_limits<std::int32_t>::max(),
                                                  std::numeric_limits<std::int32_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max(),
                                                  std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::uint32_t>::max(),
                                                  1'000'000};
  constexpr std::size_t kFew = 12;
  return OneIn(2) ? static_cast<std::int64_t>(Below(kFew)) : kCorners.at(Below(kCorners.size()));
}

double Mutator::Real() {
  using Limits = std::numeric_limits<double>;
  constexpr std::array kCorners{0.0,
                                -0.0,
                                1.0,
                                0.5,
                                -1.0,
                                1e-300,
                                1e18,
                                1e300,
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                Limits::denorm_min()};
  constexpr std::size_t kMost = 10'000;
  return OneIn(2) ? static_cast<double>(Below(kMost)) / 4 : kCorners.at(Below(kCorners.size()));
}

std::string Mutator::Text(std::string before) {
  constexpr std::array kWords{
      "",      "n0",    "n1",   "ann",  "t1",         "d",       "afterok:1", "afterany:1:2",
      "1",     "0-9%2", "loss", "true", "singleton",  "name",    "priority",  "dependency",
      "begin", "time",  "/",    "../x", "/tmp/a:/b",  "A100",    "\n",        "\xc3\xa9",
      "gpus",  "queue", "*",    "user", "1-12:00:00", "python3", "1_0",       "a|b"};
  constexpr std::size_t kMost = 300;
  if (OneIn(2)) {
    return kWords.at(Below(kWords.size()));
  }
  std::string changed = bytes_(std::move(before), kMost);
  return io::IsUtf8(changed) || OneIn(20) ? changed : "x";
}

void Mutator::SetScalar(Message& message, const FieldDescriptor& field, int at) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = at >= 0;
#define TRAINYARD_SET(Type, value)                                     \
  repeated ? reflection.SetRepeated##Type(&message, &field, at, value) \
           : reflection.Set##Type(&message, &field, value)
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return TRAINYARD_SET(Int32, static_cast<std::int32_t>(Integer()));
    case FieldDescriptor::CPPTYPE_INT64:
      return TRAINYARD_SET(Int64, Integer());
    case FieldDescriptor::CPPTYPE_UINT32:
      return TRAINYARD_SET(UInt32, static_cast<std::uint32_t>(Integer()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return TRAINYARD_SET(UInt64, static_cast<std::uint64_t>(Integer()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return TRAINYARD_SET(Double, Real());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return TRAINYARD_SET(Float, static_cast<float>(Real()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return TRAINYARD_SET(Bool, OneIn(2));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto values = static_cast<std::size_t>(field.enum_type()->value_count());
      const int value = OneIn(20)
                            ? static_cast<int>(Integer() % 1000)
                            : field.enum_type()->value(static_cast<int>(Below(values)))->number();
      return TRAINYARD_SET(EnumValue, value);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string before = repeated ? reflection.GetRepeatedString(message, &field, at)
                                    : reflection.GetString(message, &field);
      return TRAINYARD_SET(String, Text(std::move(before)));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
#undef TRAINYARD_SET
}

// Sets the field to something; where it may be there several times, adds or changes one.
void Mutator::SetField(Message& message, const FieldDescriptor& field,  // NOLINT(misc-no-recursion)
                       int depth) {
  const Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    Message& inner = field.is_repeated() ? *reflection.AddMessage(&message, &field)
                                         : *reflection.MutableMessage(&message, &field);
    const auto fields = static_cast<std::size_t>(inner.GetDescriptor()->field_count());
    constexpr std::size_t kMost = 3;
    for (std::size_t i = Below(kMost + 1); fields > 0 && depth < kDeepest && i > 0; --i) {
      SetField(inner, *inner.GetDescriptor()->field(static_cast<int>(Below(fields))), depth + 1);
    }
    return;
  }
  if (!field.is_repeated()) {
    return SetScalar(message, field, -1);
  }
  const int size = reflection.FieldSize(message, &field);
  if (size > 0 && OneIn(2)) {
    return SetScalar(message, field, static_cast<int>(Below(static_cast<std::size_t>(size))));
  }
  AddNothing(message, field);
  SetScalar(message, field, size);
}

void Mutator::Change(Message& message) {
  std::vector<Message*> all;
  Collect(message, all);
  Message& chosen = *all[Below(all.size())];
  const Descriptor& type = *chosen.GetDescriptor();
  const Reflection& reflection = *chosen.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(chosen, &set);
  if (!set.empty() && OneIn(3)) {  // a field that is there
    const FieldDescriptor& field = *set[Below(set.size())];
    if (OneIn(3)) {
      return field.is_repeated() ? reflection.RemoveLast(&chosen, &field)
                                 : reflection.ClearField(&chosen, &field);
    }
    return SetField(chosen, field, 0);
  }
  if (type.field_count() > 0) {
    const auto fields = static_cast<std::size_t>(type.field_count());
    SetField(chosen, *type.field(static_cast<int>(Below(fields))), 0);
  }
}

std::string Mutator::ChangedMessage(const Target& target, unsigned kind, const std::string& bytes) {
  const Message* const prototype = target.message(kind);
  if (prototype == nullptr) {
    return bytes_(bytes, 2);
  }
  const std::unique_ptr<Message> message(prototype->New());
  if (!message->ParsePartialFromString(bytes)) {
    message->Clear();
  }
  do {
    Change(*message);
  } while (!OneIn(3));
  return message->SerializePartialAsString();
}

void Mutator::ChangeParts(const Target& target, std::vector<Part>& parts) {
  constexpr std::size_t kWays = 12;
  constexpr std::size_t kKinds = 256;
  const std::size_t way = parts.empty() ? 0 : Below(kWays);
  const std::size_t at = Below(parts.size());
  const auto place = [this, &parts] {
    return parts.begin() + static_cast<std::ptrdiff_t>(Below(parts.size() + 1));
  };
  if (way == 0) {
    const auto kind = static_cast<unsigned>(OneIn(4) ? Below(kKinds) : Below(target.kinds));
    parts.insert(place(), {.kind = kind, .bytes = ChangedMessage(target, kind, {})});
  } else if (way == 1) {
    Part again = parts[at];
    parts.insert(place(), std::move(again));
  } else if (way == 2) {
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (way == 3) {
    std::swap(parts[at], parts[Below(parts.size())]);
  } else if (way == 4) {
    parts[at].kind = static_cast<unsigned>(Below(target.kinds));
  } else {
    parts[at].bytes = ChangedMessage(target, parts[at].kind, parts[at].bytes);
  }
}

// Lines are doubled, dropped and exchanged; words give way to other words, numbers to others.
std::string Mutator::ChangedText(std::string text) {
  std::vector<std::string_view> lines = base::Split(text, "\n");
  const std::size_t at = Below(lines.size());
  const std::size_t other = Below(lines.size());
  const auto join = [&lines] {
    std::string joined;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      joined += (i == 0 ? "" : "\n") + std::string(lines[i]);
    }
    return joined;
  };
  if (lines.size() > 1 && OneIn(4)) {
    const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
    if (OneIn(3)) {
      lines.insert(place, lines[other]);
    } else if (OneIn(2)) {
      lines.erase(place);
    } else {
      std::swap(lines[at], lines[other]);
    }
    return join();
  }
  const auto line = std::string(lines[at]);
  const std::vector<Word> words = WordsOf(line);
  const std::vector<Word> others = WordsOf(lines[other]);
  if (words.empty()) {
    return bytes_(std::move(text), text.size() + 1);
  }
  const Word& word = words[Below(words.size())];
  std::string instead;
  if (word.is_number && !OneIn(4)) {
    instead = OneIn(3) ? fmt::format("{}", Real()) : std::to_string(Integer());
  } else if (!others.empty() && OneIn(2)) {
    const Word& from = others[Below(others.size())];
    instead = lines[other].substr(from.begin, from.size);
  } else {
    instead = Text(line.substr(word.begin, word.size));
  }
  const std::string changed =
      line.substr(0, word.begin) + instead + line.substr(word.begin + word.size);
  lines[at] = changed;
  return join();
}

std::string Mutator::Changed(const Target& target, std::string_view input, std::size_t most) {
  constexpr std::size_t kAsBytes = 10;
  const bool text = target.message == nullptr;
  if (OneIn(text ? 3 : kAsBytes)) {
    return bytes_(std::string(input), most);
  }
  if (text) {
    std::string changed = ChangedText(std::string(input));
    return changed.size() <= most ? changed : std::string(input);
  }
  if (target.kinds == 0) {
    const std::string changed = ChangedMessage(target, 0, std::string(input));
    return changed.size() <= most ? changed : std::string(input);
  }
  constexpr std::size_t kLongest = 65'535;
  std::vector<Part> parts;
  for (const Record& record : RecordsOf(input)) {
    parts.push_back({.kind = record.kind, .bytes = std::string(record.bytes)});
  }
  do {
    ChangeParts(target, parts);
  } while (OneIn(2));
  std::string changed;
  for (const Part& part : parts) {
    std::string record;
    AddRecord(part.kind, part.bytes.substr(0, kLongest), record);
    if (changed.size() + record.size() <= most) {
      changed += record;
    }
  }
  return changed;
}

}  // namespace trainyard::fuzz
