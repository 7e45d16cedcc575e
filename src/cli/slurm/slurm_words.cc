// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_words.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace trainyard::cli {
namespace {

int ArgumentOf(SlurmOption::Value value) {
  switch (value) {
    case SlurmOption::Value::kNone:
      return no_argument;
    case SlurmOption::Value::kOptional:
      return optional_argument;
    case SlurmOption::Value::kNeeded:
      return required_argument;
  }
  return no_argument;
}

// The options as getopt_long takes them.
class OptionTable {
 public:
  OptionTable(std::span<const SlurmOption> known, bool stops)
      : known_(known), letters_(stops ? "+" : "") {
    names_.reserve(known.size());
    for (std::size_t i = 0; i < known.size(); ++i) {
      const int argument = ArgumentOf(known[i].value);
      names_.emplace_back(known[i].name);  // ends with a zero
      options_.push_back(
          {names_.back().c_str(), argument, nullptr, kFirstLong + static_cast<int>(i)});
      if (known[i].letter != 0) {
        letters_ += known[i].letter;
        letters_ += argument == no_argument ? "" : argument == optional_argument ? "::" : ":";
      }
    }
    options_.push_back({nullptr, 0, nullptr, 0});
  }
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  [[nodiscard]] const char* letters() const { return letters_.c_str(); }
  [[nodiscard]] const option* options() const { return options_.data(); }
  // The option for which getopt_long has given this; null: none.
  [[nodiscard]] const SlurmOption* Found(int value) const {
    if (value >= kFirstLong) {
      return &known_[static_cast<std::size_t>(value - kFirstLong)];
    }
    const auto at = std::find_if(known_.begin(), known_.end(), [value](const SlurmOption& one) {
      return one.letter != 0 && one.letter == value;
    });
    return at == known_.end() ? nullptr : &*at;
  }

 private:
  static constexpr int kFirstLong = 256;  // above all letters

  std::span<const SlurmOption> known_;
  std::string letters_;
  std::vector<std::string> names_;
  std::vector<option> options_;
};

}  // namespace

std::optional<std::string> SlurmWords::Value(std::string_view name) const {
  const auto last = std::find_if(options.rbegin(), options.rend(),
                                 [name](const auto& option) { return option.first->name == name; });
  return last == options.rend() ? std::nullopt : std::optional(last->second);
}

std::vector<std::string> SlurmWords::Items(std::string_view name) const {
  std::vector<std::string> items;
  for (const auto& [option, value] : options) {
    if (option->name == name) {
      for (const std::string_view item : base::Split(value, ",")) {
        items.emplace_back(item);
      }
    }
  }
  return items;
}

int SlurmError(std::string_view command, std::string_view message) {
  if (message == kNoSuchJob) {
    fmt::print(stderr, "{}\n", message);
  } else {
    fmt::print(stderr, "{}: error: {}\n", command, message);
  }
  return 1;
}

std::optional<SlurmWords> ReadSlurmWords(std::string_view command,
                                         const std::vector<std::string>& words,
                                         std::span<const SlurmOption> known, bool stops) {
  const OptionTable table(known, stops);
  std::vector<std::string> copies(1, std::string(command));
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> given;
  given.reserve(copies.size() + 1);
  for (std::string& copy : copies) {
    given.push_back(copy.data());
  }
  given.push_back(nullptr);

  SlurmWords read;
  optind = 0;  // begins anew
  while (true) {
    const int found = getopt_long(static_cast<int>(copies.size()), given.data(), table.letters(),
                                  table.options(), nullptr);
    if (found == -1) {
      break;
    }
    const SlurmOption* const option = table.Found(found);
    if (option == nullptr) {
      fmt::print(stderr, "Try \"{} --help\" for more information\n", command);
      return std::nullopt;
    }
    if (option->use == SlurmOption::Use::kRefused) {
      SlurmError(command, fmt::format("--{} is not here: {}", option->name, option->here));
      return std::nullopt;
    }
    read.options.emplace_back(option, optarg == nullptr ? "" : optarg);
  }
  read.rest.assign(copies.begin() + optind, copies.end());
  return read;
}

}  // namespace trainyard::cli
