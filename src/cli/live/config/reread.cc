// SPDX-License-Identifier: Apache-2.0
#include "cli/live/config/reread.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "base/text.h"

namespace trainyard::cli {
namespace {

std::string TextOf(const std::map<std::string, std::string>& options, const std::string& name) {
  const auto found = options.find(name);
  return found == options.end() ? "not set" : "'" + found->second + "'";
}

// A line of the log.
std::string OneLine(const std::string& message) {
  std::string line;
  for (const std::string_view part : base::Split(message, "\n")) {
    if (!base::Trim(part).empty()) {
      line += fmt::format("{}{}", line.empty() ? "" : "; ", base::Trim(part));
    }
  }
  return line;
}

}  // namespace

std::map<std::string, std::string> GivenOptions(const CLI::App& command) {
  std::map<std::string, std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->empty() && !option->get_lnames().empty()) {
      given["--" + option->get_lnames().front()] =
          fmt::format("{}", fmt::join(option->results(), " "));
    }
  }
  return given;
}

std::string Reread::Read() {
  const Result<std::shared_ptr<const Command>> again = chosen_.read_again();
  if (!again.ok()) {
    return "the configuration cannot be read again: " + OneLine(again.error().message) +
           "; everything stays as it was";
  }
  if (take_) {  // also where no option has changed: files that they name may have
    if (const Status taken = take_(*again.value()); !taken.ok()) {
      return "the configuration is wrong: " + OneLine(taken.error().message) +
             "; everything stays as it was";
    }
  }
  const std::map<std::string, std::string>& now = again.value()->given;
  std::map<std::string, std::string> all = now;
  all.insert(run_.begin(), run_.end());
  std::string taken;
  std::string left;
  for (const auto& [name, text] : all) {
    const std::string is = TextOf(now, name);
    const std::string was = TextOf(run_, name);
    if (is == was) {
      continue;
    }
    std::string& list = taken_.contains(name) ? taken : left;
    list += fmt::format("{}{} is {} (was {})", list.empty() ? "" : ", ", name, is, was);
  }
  for (const std::string& name : taken_) {
    run_.erase(name);
    if (const auto found = now.find(name); found != now.end()) {
      run_.insert(*found);
    }
  }
  return fmt::format("the configuration has been read again{}{}{}",
                     taken.empty() ? "" : "; from now on " + taken,
                     left.empty() ? "" : "; needs a restart: " + left,
                     taken.empty() && left.empty() ? "; no option has changed" : "");
}

}  // namespace trainyard::cli
