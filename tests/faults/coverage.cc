// SPDX-License-Identifier: Apache-2.0
#include "faults/coverage.h"

namespace trainyard::faults {
namespace {

constexpr std::array kMessageNames{"hello", "beat",     "data",   "fetching", "ready",
                                   "runs",  "stopping", "gone",   "welcome",  "answer",
                                   "start", "stop",     "forget", "fetch",    "tune"};
constexpr std::size_t kHello = 0;
constexpr std::size_t kFetching = 3;
constexpr std::size_t kWelcome = 8;
constexpr std::size_t kStart = 10;
constexpr std::size_t kEnd = kMessageNames.size();

constexpr std::array kFaultNames{
    "controller crash", "crash in a write", "full disk", "cluster sick",
    "agent crash",      "node crash",       "disk lost", "broken connection",
    "partition",        "node sick",        "drain",     "undrain",
    "clock jump"};
constexpr std::array kStateNames{"waiting",   "starting",    "running",  "stopping",
                                 "runs here", "leaves here", "gone here"};
constexpr std::array kStepNames{"plain meets",    "plain works", "torchrun comes", "torchrun meets",
                                "torchrun works", "mpi comes",   "mpi meets",      "mpi works"};
constexpr std::array<const char*, kStarters> kStarterNames{"emulated", "plain", "torchrun", "mpi"};

std::optional<std::size_t> KindOf(const v1::AgentMessage& message) {
  switch (message.kind_case()) {
    case v1::AgentMessage::kHello:
      return kHello;
    case v1::AgentMessage::kHeartbeat:
      return 1;
    case v1::AgentMessage::kData:
      return 2;
    case v1::AgentMessage::kAttempt:
      break;
    default:
      return std::nullopt;
  }
  switch (message.attempt().state()) {
    case v1::AttemptReport::FETCHING:
      return kFetching;
    case v1::AttemptReport::READY:
      return kFetching + 1;
    case v1::AttemptReport::RUNNING:
      return kFetching + 2;
    case v1::AttemptReport::STOPPING:
      return kFetching + 3;
    case v1::AttemptReport::EXITED:
      return kFetching + 4;
    default:
      return std::nullopt;
  }
}

struct Told {
  std::size_t kind = 0;
  const v1::AttemptId* id = nullptr;
};

std::optional<Told> KindOf(const v1::ControllerMessage& message) {
  switch (message.kind_case()) {
    case v1::ControllerMessage::kWelcome:
      return Told{kWelcome};
    case v1::ControllerMessage::kHeartbeat:
      return Told{kWelcome + 1};
    case v1::ControllerMessage::kStart:
      return Told{kStart, &message.start().id()};
    case v1::ControllerMessage::kStop:
      return Told{kStart + 1, &message.stop().id()};
    case v1::ControllerMessage::kForget:
      return Told{kStart + 2, &message.forget().id()};
    case v1::ControllerMessage::kFetch:
      return Told{kStart + 3, &message.fetch().id()};
    case v1::ControllerMessage::kTune:
      return Told{kStart + 4, &message.tune().id()};
    default:
      return std::nullopt;
  }
}

// Whether one may come after the other at all: both go one way, and a connection begins with hello.
bool IsPossible(std::size_t before, std::size_t kind, bool about_an_attempt) {
  const bool one_way = (before < kWelcome) == (kind < kWelcome);
  if (about_an_attempt) {
    const auto is_of_attempt = [](std::size_t of) {
      return of < kWelcome ? of >= kFetching : of >= kStart;
    };
    return one_way && is_of_attempt(before) && is_of_attempt(kind);
  }
  return one_way && kind != kHello;
}

}  // namespace

void Coverage::Note(std::size_t kind, std::optional<std::size_t> before, Pairs& pairs) {
  if (before) {
    pairs.set(*before * kKinds + kind);
  }
}

void Coverage::Note(std::size_t kind, std::uint64_t connection, const About& about, Last& last) {
  const auto [at, first] = last.of_connection.emplace(connection, kind);
  Note(kind, first ? std::nullopt : std::optional(at->second), over_connections_);
  at->second = kind;
  if (about.id != nullptr) {
    const auto [of, begins] =
        last.of_attempt.emplace(std::pair{about.id->job(), about.id->attempt()}, kind);
    Note(kind, begins ? std::nullopt : std::optional(of->second),
         about_attempts_[static_cast<std::size_t>(about.starter)]);
    of->second = kind;
  }
}

void Coverage::Arrived(std::uint64_t connection, const v1::AgentMessage& message, Starter starter) {
  if (const std::optional<std::size_t> kind = KindOf(message)) {
    Note(*kind, connection, {message.has_attempt() ? &message.attempt().id() : nullptr, starter},
         up_);
  }
}

void Coverage::Arrived(std::uint64_t connection, const v1::ControllerMessage& message,
                       Starter starter) {
  if (const std::optional<Told> told = KindOf(message)) {
    Note(told->kind, connection, {told->id, starter}, down_);
  }
}

void Coverage::Merge(const Coverage& other) {
  states_ |= other.states_;
  steps_ |= other.steps_;
  over_connections_ |= other.over_connections_;
  for (std::size_t starter = 0; starter < kStarters; ++starter) {
    about_attempts_[starter] |= other.about_attempts_[starter];
  }
}

Coverage::Share Coverage::states() const {
  return {.reached = states_.count(), .of = states_.size()};
}

Coverage::Share Coverage::steps() const { return {.reached = steps_.count(), .of = steps_.size()}; }

Coverage::Share Coverage::orders() const {
  Share share{.reached = over_connections_.count()};
  for (const Pairs& pairs : about_attempts_) {
    share.reached += pairs.count();
  }
  for (std::size_t pair = 0; pair < kEnd * kEnd; ++pair) {
    share.of += IsPossible(pair / kEnd, pair % kEnd, false) ? 1 : 0;
    share.of += IsPossible(pair / kEnd, pair % kEnd, true) ? kStarters : 0;
  }
  return share;
}

std::set<std::string> Coverage::missing() const {
  std::set<std::string> names;
  const auto add_missing = [&names](const auto& reached, std::size_t fault, const auto& of) {
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (!reached.test(fault * of.size() + i)) {
        names.insert(std::string(kFaultNames[fault]) + " x " + of[i]);
      }
    }
  };
  for (std::size_t fault = 0; fault < kFaultKinds; ++fault) {
    add_missing(states_, fault, kStateNames);
    add_missing(steps_, fault, kStepNames);
  }
  for (std::size_t pair = 0; pair < kEnd * kEnd; ++pair) {
    const std::size_t before = pair / kEnd;
    const std::size_t kind = pair % kEnd;
    const std::string name = std::string(kMessageNames[before]) + ", " + kMessageNames[kind];
    if (IsPossible(before, kind, false) && !over_connections_.test(before * kKinds + kind)) {
      names.insert(name + " over a connection");
    }
    for (std::size_t starter = 0; starter < kStarters; ++starter) {
      if (IsPossible(before, kind, true) &&
          !about_attempts_[starter].test(before * kKinds + kind)) {
        names.insert(name + " about an attempt: " + kStarterNames[starter]);
      }
    }
  }
  return names;
}

}  // namespace trainyard::faults
