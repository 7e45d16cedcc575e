// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace trainyard::supervisor {
namespace {

constexpr int kAnyNumber = std::numeric_limits<int>::max();

// What a node of the job has for the step.
struct RoomOnNode {
  int node = 0;
  std::vector<int> cpus;  // places
  std::vector<int> gpus;
  bool any_cpus = false;
  bool is_required = false;
  int tasks = 0;  // that it can take
};

class StepPlacer {
 public:
  StepPlacer(const StepOptions& step, const std::vector<JobNode>& job) : step_(step), job_(job) {}

  Result<StepLayout> Place(StepClaims& claims) {
    std::vector<RoomOnNode> all = Candidates();
    for (RoomOnNode& room : all) {
      const JobNode& node = job_[static_cast<std::size_t>(room.node)];
      for (int cpu = 0; cpu < node.cpus; ++cpu) {
        room.cpus.push_back(cpu);
      }
      for (int gpu = 0; gpu < node.gpus; ++gpu) {
        room.gpus.push_back(gpu);
      }
    }
    std::optional<std::vector<RoomOnNode>> chosen = Choose(all);
    if (!chosen) {
      return InvalidArgument(WhyNever(all));
    }
    io::Descriptor turn;
    if (!step_.overlaps) {
      turn = claims.Turn();
      for (RoomOnNode& room : all) {
        const JobNode& node = job_[static_cast<std::size_t>(room.node)];
        room.cpus = claims.Free(Claimable::kCpu, room.node, node.cpus);
        room.gpus = claims.Free(Claimable::kGpu, room.node, node.gpus);
      }
      chosen = Choose(all);
      if (!chosen) {
        return Busy();
      }
    }
    StepLayout layout = LayOut(*chosen);
    if (!step_.overlaps && !Claim(*chosen, layout, claims)) {
      claims.ReleaseAll();
      return Busy();
    }
    return layout;
  }

 private:
  static Error Busy() {
    return Error{.code = ErrorCode::kUnavailable, .message = "Requested nodes are busy"};
  }

  // In the order in which they are tried.
  [[nodiscard]] std::vector<RoomOnNode> Candidates() const {
    std::vector<RoomOnNode> rooms;
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const int count = static_cast<int>(job_.size());
    for (int i = 0; i < count; ++i) {
      const int node = (i + step_.first_node) % count;
      const JobNode& there = job_[static_cast<std::size_t>(node)];
      if (!is_in(step_.excluded, there.name)) {
        rooms.push_back({.node = node,
                         .cpus = {},
                         .gpus = {},
                         .any_cpus = there.cpus == 0 || step_.overcommits,
                         .is_required = is_in(step_.node_list, there.name)});
      }
    }
    return rooms;
  }

  [[nodiscard]] int GpusHere(std::size_t part, int tasks) const {
    if (step_.gpus_per_task > 0) {
      return step_.gpus_per_task * tasks;
    }
    if (step_.gpus_per_node > 0) {
      return step_.gpus_per_node;
    }
    const int more = static_cast<int>(part) < step_.gpus % step_.nodes ? 1 : 0;
    return step_.gpus / step_.nodes + more;
  }

  [[nodiscard]] int TasksFor(const RoomOnNode& room) const {
    const int gpus = static_cast<int>(room.gpus.size());
    if (gpus < GpusHere(0, 1)) {
      return 0;
    }
    const int by_cpus =
        room.any_cpus ? kAnyNumber : static_cast<int>(room.cpus.size()) / step_.cpus_per_task;
    return step_.gpus_per_task > 0 ? std::min(by_cpus, gpus / step_.gpus_per_task) : by_cpus;
  }

  // So many nodes as it wants, with room for its tasks, in the order of the job. None: there is no
  // such room.
  [[nodiscard]] std::optional<std::vector<RoomOnNode>> Choose(std::vector<RoomOnNode> rooms) const {
    for (RoomOnNode& room : rooms) {
      room.tasks = TasksFor(room);
    }
    std::erase_if(rooms, [](const RoomOnNode& room) { return room.tasks == 0; });
    const auto required = static_cast<std::size_t>(std::count_if(
        rooms.begin(), rooms.end(), [](const RoomOnNode& room) { return room.is_required; }));
    const auto wanted = static_cast<std::size_t>(step_.nodes);
    if (rooms.size() < wanted || required < step_.node_list.size()) {
      return std::nullopt;
    }
    // The first that come, or, where these have not enough room, the largest.
    for (const bool largest : {false, true}) {
      std::vector<RoomOnNode> chosen = rooms;
      std::stable_sort(chosen.begin(), chosen.end(), [&](const auto& a, const auto& b) {
        return a.is_required != b.is_required ? a.is_required : largest && a.tasks > b.tasks;
      });
      chosen.resize(wanted);
      std::int64_t tasks = 0;
      for (const RoomOnNode& room : chosen) {
        tasks += room.tasks;
      }
      if (tasks >= step_.tasks) {
        std::sort(chosen.begin(), chosen.end(),
                  [](const auto& a, const auto& b) { return a.node < b.node; });
        return chosen;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string WhyNever(const std::vector<RoomOnNode>& all) const {
    std::vector<RoomOnNode> without_gpus = all;
    StepOptions plain = step_;
    plain.gpus = plain.gpus_per_node = plain.gpus_per_task = 0;
    if (StepPlacer(plain, job_).Choose(without_gpus)) {
      return "Invalid generic resource (gres) specification";
    }
    plain.overcommits = true;
    for (RoomOnNode& room : without_gpus) {
      room.any_cpus = true;
    }
    return StepPlacer(plain, job_).Choose(without_gpus)
               ? "More processors requested than permitted"
               : "Requested node configuration is not available";
  }

  // How many tasks on each: one after the other in turn, as long as there is room.
  [[nodiscard]] StepLayout LayOut(const std::vector<RoomOnNode>& chosen) const {
    StepLayout layout;
    std::vector<std::size_t> turns;  // the part of each task, in turn
    std::vector<int> counts(chosen.size(), 0);
    for (std::size_t part = 0; static_cast<int>(turns.size()) < step_.tasks;
         part = (part + 1) % chosen.size()) {
      if (counts[part] < chosen[part].tasks) {
        ++counts[part];
        turns.push_back(part);
      }
    }
    if (!step_.cyclic) {
      std::sort(turns.begin(), turns.end());
    }
    for (const RoomOnNode& room : chosen) {
      layout.parts.push_back({.node = room.node, .ranks = {}});
    }
    for (std::size_t rank = 0; rank < turns.size(); ++rank) {
      layout.parts[turns[rank]].ranks.push_back(static_cast<int>(rank));
    }
    for (std::size_t part = 0; part < chosen.size(); ++part) {
      const auto gpus = static_cast<std::size_t>(GpusHere(part, counts[part]));
      const std::vector<int>& there = chosen[part].gpus;
      layout.parts[part].gpus.assign(
          there.begin(), there.begin() + static_cast<std::ptrdiff_t>(std::min(gpus, there.size())));
    }
    return layout;
  }

  [[nodiscard]] bool Claim(const std::vector<RoomOnNode>& chosen, const StepLayout& layout,
                           StepClaims& claims) const {
    for (std::size_t part = 0; part < chosen.size(); ++part) {
      const RoomOnNode& room = chosen[part];
      const auto cpus =
          std::min(room.cpus.size(),
                   layout.parts[part].ranks.size() * static_cast<std::size_t>(step_.cpus_per_task));
      const std::vector<int> own(room.cpus.begin(),
                                 room.cpus.begin() + static_cast<std::ptrdiff_t>(cpus));
      if (!claims.Claim(Claimable::kCpu, room.node, own) ||
          !claims.Claim(Claimable::kGpu, room.node, layout.parts[part].gpus)) {
        return false;
      }
    }
    return true;
  }

  const StepOptions& step_;
  const std::vector<JobNode>& job_;
};

}  // namespace

Result<StepLayout> PlaceStep(const StepOptions& step, const std::vector<JobNode>& job,
                             StepClaims& claims) {
  return StepPlacer(step, job).Place(claims);
}

std::vector<int> NumbersOf(const std::string& runs) {
  std::vector<int> numbers;
  for (const std::string_view run : base::Split(runs, ",")) {
    const std::size_t times = run.find("(x");
    const int number = base::ToInteger<int>(run.substr(0, times)).value_or(0);
    const int count =
        times == std::string_view::npos
            ? 1
            : base::ToInteger<int>(run.substr(times + 2, run.size() - times - 3)).value_or(1);
    numbers.insert(numbers.end(), static_cast<std::size_t>(std::max(0, count)), number);
  }
  return numbers;
}

std::string RunsOf(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) {
      ++end;
    }
    text += (text.empty() ? "" : ",") + (end - i > 1 ? fmt::format("{}(x{})", numbers[i], end - i)
                                                     : std::to_string(numbers[i]));
  }
  return text;
}

}  // namespace trainyard::supervisor
