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
  constexpr int kFirstLong = 256;  // above all letters
  std::string letters = stops ? "+" : "";
  std::vector<std::string> names(known.size());
  std::vector<option> table;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const int argument = ArgumentOf(known[i].value);
    names[i] = known[i].name;
    table.push_back({names[i].c_str(), argument, nullptr, kFirstLong + static_cast<int>(i)});
    if (known[i].letter != 0) {
      letters += known[i].letter;
      letters += argument == no_argument ? "" : argument == optional_argument ? "::" : ":";
    }
  }
  table.push_back({nullptr, 0, nullptr, 0});
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
  const int count = static_cast<int>(copies.size());
  for (int found = 0;
       (found = getopt_long(count, given.data(), letters.c_str(), table.data(), nullptr)) != -1;) {
    const auto at = found >= kFirstLong
                        ? known.begin() + (found - kFirstLong)
                        : std::find_if(known.begin(), known.end(), [found](const SlurmOption& one) {
                            return one.letter != 0 && one.letter == found;
                          });
    if (at == known.end()) {
      fmt::print(stderr, "Try \"{} --help\" for more information\n", command);
      return std::nullopt;
    }
    if (at->use == SlurmOption::Use::kRefused) {
      SlurmError(command, fmt::format("--{} is not here: {}", at->name, at->here));
      return std::nullopt;
    }
    read.options.emplace_back(&*at, optarg == nullptr ? "" : optarg);
  }
  read.rest.assign(copies.begin() + optind, copies.end());
  return read;
}

}  // namespace trainyard::cli
