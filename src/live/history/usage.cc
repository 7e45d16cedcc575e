// SPDX-License-Identifier: Apache-2.0
#include "live/history/usage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace trainyard::live {
namespace {

constexpr double kSecondsOfDay = 24 * 3600;

std::int64_t DayOf(double unix_seconds) {
  return static_cast<std::int64_t>(std::floor(unix_seconds / kSecondsOfDay));
}

// When the day begins, in the engine's time.
TimePoint BeginOf(std::int64_t day, const LiveOptions& options) {
  const double since_zero = static_cast<double>(day) * kSecondsOfDay - options.unix_zero;
  return AtSeconds(since_zero * options.time_scale);
}

UsageKey KeyOf(const v1::JobRequest& request) {
  return {.user = request.launch().has_owner() ? request.launch().owner().user() : request.user(),
          .account = request.account(),
          .queue = request.queue(),
          .model = request.model()};
}

Holding HoldingOf(const Grant& grant, TimePoint since, const v1::JobRequest& request,
                  const Cluster& cluster) {
  Holding holding{.since = since, .of = KeyOf(request)};
  for (const Slice& slice : grant.slices) {
    if (slice.gpus != 0 || slice.soft.milli_cpus != 0) {
      holding.nodes.push_back({.node = cluster.nodes[Index(slice.node)].name,
                               .gpus = std::popcount(slice.gpus),
                               .milli_cpus = slice.soft.milli_cpus});
    }
  }
  return holding;
}

Duration CpuTime(std::int64_t milli_cpus, Duration time) {
  constexpr std::int64_t kMilli = 1000;
  // In two parts: a month of a large node is beyond 64 bits in thousandths of microseconds.
  const std::int64_t micros = time.count();
  return Duration{micros / kMilli * milli_cpus + micros % kMilli * milli_cpus / kMilli};
}

}  // namespace

std::int64_t JobUse::Count(const UseNote& note) {
  std::erase_if(counted, [&note](const Counted& one) {
    return one.attempt + kAttemptsKnown <= note.attempt;
  });
  auto known = std::find_if(counted.begin(), counted.end(), [&note](const Counted& one) {
    return one.attempt == note.attempt && one.node == note.node;
  });
  if (known == counted.end()) {
    known = counted.insert(known, {.attempt = note.attempt, .node = note.node});
  }
  const std::int64_t more = std::max<std::int64_t>(0, note.use.cpu_micros - known->cpu_micros);
  known->cpu_micros += more;
  used.cpu_micros += more;
  if (note.use.peak_memory > used.peak_memory) {
    used.peak_memory = note.use.peak_memory;
    peak_node = note.node;
    peak_memory_mib = note.memory_mib;
  }
  return more;
}

JobUse CopyOf(const std::shared_ptr<const JobUse>& use) { return use ? *use : JobUse(); }

void Usage::Note(const model::Action& action, TimePoint at, const v1::JobRequest& request,
                 const Cluster& cluster) {
  const bool gets = action.kind == model::ActionKind::kLaunch ||
                    action.kind == model::ActionKind::kResize ||
                    action.kind == model::ActionKind::kMigrate;
  const bool loses =
      action.kind == model::ActionKind::kPreempt || action.kind == model::ActionKind::kRelease;
  if (!gets && !loses) {
    return;
  }
  if (const auto before = held_.find(action.job); before != held_.end()) {
    Duration given{0};
    ForEachPart(*before->second, at, options_,
                [&](std::int64_t day, UsageKey key, const UsageTimes& times) {
                  given += times.cpus;
                  Edit(day)[std::move(key)] += times;
                });
    held_.erase(before);
    if (given > Duration{0}) {
      JobUse use = CopyOf(UseOf(action.job));
      use.cpus_given += given;
      SetUse(action.job, std::move(use));
    }
  }
  if (gets) {
    held_[action.job] =
        std::make_shared<const Holding>(HoldingOf(action.grant, at, request, cluster));
  }
}

void Usage::Note(const UseNote& note, TimePoint at, const v1::JobRequest& request,
                 const Cluster& cluster) {
  JobUse use = CopyOf(UseOf(note.job));
  const std::int64_t more = use.Count(note);
  SetUse(note.job, std::move(use));
  if (more > 0) {
    UsageKey key = KeyOf(request);
    key.node = cluster.nodes[Index(note.node)].name;
    Edit(DayOf(options_.UnixSeconds(at)))[std::move(key)].cpus_used += Duration{more};
  }
}

std::shared_ptr<const JobUse> Usage::UseOf(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : found->second;
}

std::shared_ptr<const Holding> Usage::HeldBy(JobId job) const {
  const auto found = held_.find(job);
  return found == held_.end() ? nullptr : found->second;
}

Usage::Day& Usage::Edit(std::int64_t number) {
  if (std::exchange(given_out_, false)) {
    days_ = std::make_shared<Days>(*days_);
    own_.clear();
  }
  std::shared_ptr<Day>& own = own_[number];
  if (own == nullptr) {
    std::shared_ptr<const Day>& day = (*days_)[number];
    own = day == nullptr ? std::make_shared<Day>() : std::make_shared<Day>(*day);
    day = own;
  }
  return *own;
}

void Usage::ForEachPart(const Holding& holding, TimePoint until, const LiveOptions& options,
                        const AddPart& add) {
  for (TimePoint from = holding.since; from < until;) {
    std::int64_t number = DayOf(options.UnixSeconds(from));
    TimePoint end = BeginOf(number + 1, options);
    if (end <= from) {  // a rounding: the next day has begun
      end = BeginOf(++number + 1, options);
    }
    end = std::min(end, until);
    for (const NodeHolding& of : holding.nodes) {
      UsageKey key = holding.of;
      key.node = of.node;
      add(number, std::move(key),
          {.gpus = of.gpus * (end - from), .cpus = CpuTime(of.milli_cpus, end - from)});
    }
    from = end;
  }
}

void Usage::SerializeJob(JobId job, StateStream& state) {
  JobUse use = CopyOf(UseOf(job));
  state(use);
  if (state.reading() && !(use == JobUse())) {
    SetUse(job, std::move(use));
  }
}

void Usage::SerializeGpus(StateStream& state) {
  struct HeldGpus {
    TimePoint since{};
    UsageKey of{};
    std::vector<std::pair<std::string, int>> gpus{};

    void Serialize(StateStream& to) { to(since, of, gpus); }
  };
  std::map<std::int64_t, std::map<UsageKey, Duration>> times;
  std::map<JobId, HeldGpus> held;
  for (const auto& [number, day] : *days_) {
    for (const auto& [key, of] : *day) {
      times[number][key] = of.gpus;
    }
  }
  for (const auto& [job, holding] : held_) {
    HeldGpus& gpus = held[job] = {.since = holding->since, .of = holding->of};
    for (const NodeHolding& node : holding->nodes) {
      gpus.gpus.emplace_back(node.node, node.gpus);
    }
  }
  state(times, held);
  if (!state.reading()) {
    return;
  }
  days_ = std::make_shared<Days>();
  own_.clear();
  for (const auto& [number, day] : times) {
    for (const auto& [key, time] : day) {
      Edit(number)[key].gpus = time;
    }
  }
  held_.clear();
  for (auto& [job, of] : held) {
    Holding holding{.since = of.since, .of = std::move(of.of)};
    for (auto& [node, gpus] : of.gpus) {
      holding.nodes.push_back({.node = std::move(node), .gpus = gpus});
    }
    held_[job] = std::make_shared<const Holding>(std::move(holding));
  }
}

// A snapshot without it is one of a program that has counted GPUs alone.
void Usage::SerializeCpus(StateStream& state) {
  std::map<std::int64_t, std::map<UsageKey, std::pair<Duration, Duration>>> times;
  std::map<JobId, std::vector<std::int64_t>> held;  // milli CPUs, in the order of nodes
  for (const auto& [number, day] : *days_) {
    for (const auto& [key, of] : *day) {
      times[number][key] = {of.cpus, of.cpus_used};
    }
  }
  for (const auto& [job, holding] : held_) {
    std::vector<std::int64_t>& cpus = held[job];
    for (const NodeHolding& node : holding->nodes) {
      cpus.push_back(node.milli_cpus);
    }
  }
  state(times, held);
  if (!state.reading()) {
    return;
  }
  for (const auto& [number, day] : times) {
    for (const auto& [key, of] : day) {
      UsageTimes& known = Edit(number)[key];
      known.cpus = of.first;
      known.cpus_used = of.second;
    }
  }
  for (auto& [job, holding] : held_) {
    Holding with = *holding;
    const std::vector<std::int64_t>& cpus = held[job];
    for (std::size_t i = 0; i < std::min(cpus.size(), with.nodes.size()); ++i) {
      with.nodes[i].milli_cpus = cpus[i];
    }
    holding = std::make_shared<const Holding>(std::move(with));
  }
}

}  // namespace trainyard::live
