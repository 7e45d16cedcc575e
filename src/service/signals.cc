// SPDX-License-Identifier: Apache-2.0
#include "service/signals.h"

#include <array>
#include <csignal>

namespace trainyard::service {
namespace {

struct NamedSignal {
  int number;
  const char* name;
};
constexpr std::array<NamedSignal, 7> kSignals{{{SIGHUP, "HUP"},
                                               {SIGINT, "INT"},
                                               {SIGQUIT, "QUIT"},
                                               {SIGUSR1, "USR1"},
                                               {SIGUSR2, "USR2"},
                                               {SIGTERM, "TERM"},
                                               {SIGCONT, "CONT"}}};

const NamedSignal* Find(int signal) {
  for (const NamedSignal& known : kSignals) {
    if (known.number == signal) {
      return &known;
    }
  }
  return nullptr;
}

}  // namespace

int SignalNamed(std::string_view text) {
  const std::string_view name = text.starts_with("SIG") ? text.substr(3) : text;
  for (const NamedSignal& signal : kSignals) {
    if (name == signal.name || name == std::to_string(signal.number)) {
      return signal.number;
    }
  }
  return 0;
}

std::string SignalText(int signal) {
  const NamedSignal* const known = Find(signal);
  return known == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + known->name;
}

Status CheckSignal(int signal) {
  if (Find(signal) == nullptr) {
    return InvalidArgument(SignalText(signal) + " is not passed on; expected " + kPassedSignals);
  }
  return {};
}

}  // namespace trainyard::service
