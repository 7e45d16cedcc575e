// SPDX-License-Identifier: Apache-2.0
// torchloader (IEEE CLOUD 2022): jobs run at once on the GPUs that their users name, alone or not;
// what is divided are the CPU cores, as workers that load data. Divided anew when jobs arrive and
// depart. Jobs that name no GPUs take the first that nobody has, for themselves alone. Without a
// model catalogue nothing is divided and nobody shares.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "loader/division.h"
#include "loader/loader_execution.h"
#include "loader/reallocation.h"
#include "policies/policies.h"
#include "policies/torchloader/open_gpus.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 6> kTorchloaderOptions{{
    loader::kAllocationOption,
    {"mode", OptionSpec::Kind::kChoice, "3",
     "workers are divided: 1 never (as asked for), 2 at arrivals, 3 at arrivals and departures",
     "1|2|3"},
    loader::kLeastGainOption,
    {"finish_buffer", OptionSpec::Kind::kNumber, "0",
     "seconds within which departures count as one"},
    {"change", OptionSpec::Kind::kChoice, "tune",
     "a running job gets other workers as it runs, or is paused and launched again",
     "tune|restart"},
    {"predictions", OptionSpec::Kind::kChoice, "sound",
     "published: iterations may be predicted to take less than no time", "sound|published"},
}};

struct TorchloaderSettings {
  loader::DivisionOptions division;
  loader::ReallocationMode mode{};
  Duration finish_buffer{};
  bool restarts = false;
};

struct Memo final : Memory {
  loader::LoaderQueues queues;
  std::map<JobId, Slices> places;  // of those who name none, while they hold them
  std::vector<JobId> departed;     // but not yet counted as such
  TimePoint first_departure{};

  void Serialize(StateStream& state) override { state(queues, places, departed, first_departure); }
};

class Torchloader final : public Policy {
 public:
  Torchloader(TorchloaderSettings settings, const loader::LoaderProfiles* profiles)
      : settings_(settings), profiles_(profiles) {}

  [[nodiscard]] std::string_view name() const override { return "torchloader"; }
  [[nodiscard]] PolicyTraits traits() const override {
    const bool divides = profiles_ != nullptr;
    return {.needs = {.gpu_types = TypeSupport::kOne, .named_devices = divides},
            .may = {.share = divides, .name_gpus = true, .take_others = !divides}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Memo>();
  }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    Memo& memo = static_cast<Memo&>(*memory);
    for (const JobId job : snapshot.resized) {
      memo.places.erase(job);  // it asks for another number: departs, and arrives anew
    }
    return profiles_ == nullptr ? InTurn(snapshot, memo) : Divided(snapshot, memo);
  }

 private:
  [[nodiscard]] Proposal Divided(const Snapshot& snapshot, Memo& memo) const {
    NoteDepartures(JobsInPlace(snapshot, memo), snapshot.now, memo);
    std::set<JobId> restarted;
    const loader::Reallocation machine(
        settings_.mode, [&](const loader::LoaderQueues& queues, std::span<const JobId> jobs) {
          return Divide(snapshot, memo, queues, jobs);
        });
    const auto let_go = [&] {
      Carry(machine, machine.Finish(std::move(memo.queues), memo.departed), memo, restarted);
      memo.departed.clear();
    };
    if (!memo.departed.empty() && snapshot.now >= memo.first_departure + settings_.finish_buffer) {
      let_go();
    }
    const std::vector<loader::LoaderArrival> arrivals = ArrivalsOf(snapshot, memo);
    if (!arrivals.empty()) {
      if (!memo.departed.empty()) {  // whoever arrives finds them gone, buffer or not
        let_go();
      }
      Carry(machine, machine.Arrive(std::move(memo.queues), arrivals), memo, restarted);
    }
    return ProposalFor(snapshot, memo, restarted);
  }

  // Without a catalogue: one after another, each alone on its GPUs, until one finds none.
  static Proposal InTurn(const Snapshot& snapshot, Memo& memo) {
    const std::vector<JobId> here = JobsInPlace(snapshot, memo);
    std::erase_if(memo.places, [&here](const auto& place) {
      return std::find(here.begin(), here.end(), place.first) == here.end();
    });
    OpenGpus open(snapshot);
    Proposal proposal;
    const auto serve = [&](JobId job, const Slices& place) {
      open.Take(place);
      memo.places[job] = place;
      proposal.demands.push_back(
          {.job = job, .gpus = snapshot.jobs->spec(job).gpus, .slices = place});
    };
    const std::map<JobId, Slices> held = memo.places;
    for (const auto& [job, place] : held) {
      serve(job, place);
    }
    for (const JobId job : snapshot.jobs->live()) {
      if (held.contains(job)) {
        continue;
      }
      const Slices place = OpenPlace(snapshot.jobs->spec(job), open);
      if (place.empty()) {
        break;
      }
      serve(job, place);
    }
    return proposal;
  }

  // Where a job can be alone: on the GPUs that it names, or on the first; empty: nowhere.
  static Slices OpenPlace(const JobSpec& job, const OpenGpus& open) {
    const Slices& named = loader::DevicesOf(job);
    if (named.empty()) {
      return open.First(job.gpus);
    }
    return open.AreOpen(named) ? named : Slices();
  }

  static const Slices& PlaceOf(JobId job, const Snapshot& snapshot, const Memo& memo) {
    const auto place = memo.places.find(job);
    return place != memo.places.end() ? place->second : loader::DevicesOf(snapshot.jobs->spec(job));
  }

  // Live jobs whose GPUs are known and up.
  static std::vector<JobId> JobsInPlace(const Snapshot& snapshot, const Memo& memo) {
    std::vector<JobId> here;
    for (const JobId job : snapshot.jobs->live()) {
      const Slices& place = PlaceOf(job, snapshot, memo);
      if (!place.empty() && AreUp(place, snapshot)) {
        here.push_back(job);
      }
    }
    return here;
  }

  static bool AreUp(const Slices& slices, const Snapshot& snapshot) {
    return std::all_of(slices.begin(), slices.end(),
                       [&](const Slice& slice) { return snapshot.up(slice.node); });
  }

  struct Room {
    OpenGpus unused;
    OpenGpus shared;  // where whoever names GPUs may be
  };

  // Beside those who run or are about to.
  static Room RoomBeside(const Snapshot& snapshot, const Memo& memo) {
    Room room{.unused = OpenGpus(snapshot), .shared = OpenGpus(snapshot)};
    for (const auto& [job, state] : memo.queues.jobs) {
      if (std::find(memo.departed.begin(), memo.departed.end(), job) != memo.departed.end()) {
        continue;
      }
      room.unused.Take(PlaceOf(job, snapshot, memo));
      if (const auto place = memo.places.find(job); place != memo.places.end()) {
        room.shared.Take(place->second);
      }
    }
    return room;
  }

  // Those who name GPUs arrive at once, unless somebody has one of these to himself; the others as
  // they find GPUs, in their order.
  static std::vector<loader::LoaderArrival> ArrivalsOf(const Snapshot& snapshot, Memo& memo) {
    std::erase_if(memo.places,
                  [&memo](const auto& place) { return !memo.queues.jobs.contains(place.first); });
    Room room = RoomBeside(snapshot, memo);
    std::vector<loader::LoaderArrival> arrivals;
    bool behind = false;
    for (const JobId job : snapshot.jobs->live()) {
      if (memo.queues.jobs.contains(job)) {
        continue;
      }
      const JobSpec& spec = snapshot.jobs->spec(job);
      const bool names = !loader::DevicesOf(spec).empty();
      const Slices place =
          names || !behind ? OpenPlace(spec, names ? room.shared : room.unused) : Slices();
      if (place.empty()) {
        behind = behind || !names;
        continue;
      }
      room.unused.Take(place);
      if (!names) {
        room.shared.Take(place);
        memo.places[job] = place;
      }
      arrivals.push_back(
          {.job = job, .workers = spec.traits == nullptr ? 0 : spec.traits->loader_workers});
    }
    return arrivals;
  }

  static void NoteDepartures(std::span<const JobId> here, TimePoint now, Memo& memo) {
    const std::set<JobId> present(here.begin(), here.end());
    std::erase_if(memo.departed, [&](JobId job) { return present.contains(job); });  // a node is up
    for (const JobId job : memo.queues.running) {
      if (!present.contains(job) &&
          std::find(memo.departed.begin(), memo.departed.end(), job) == memo.departed.end()) {
        memo.first_departure = memo.departed.empty() ? now : memo.first_departure;
        memo.departed.push_back(job);
      }
    }
  }

  [[nodiscard]] std::vector<int> Divide(const Snapshot& snapshot, const Memo& memo,
                                        const loader::LoaderQueues& queues,
                                        std::span<const JobId> jobs) const {
    std::vector<loader::LoaderJob> asked;
    for (const JobId job : jobs) {
      const JobSpec& spec = snapshot.jobs->spec(job);
      const bool ready =
          std::find(queues.ready.begin(), queues.ready.end(), job) != queues.ready.end();
      asked.push_back({.spec = &spec,
                       .slices = &PlaceOf(job, snapshot, memo),
                       .workers = queues.jobs.at(job).workers,
                       .settled = !ready});
    }
    return loader::WorkerDivision(*profiles_, settings_.division)
        .Divide(*snapshot.cluster, asked, snapshot.rates);
  }

  // Whoever is told to pause stops at once: what it costs is the engine's matter.
  static void Carry(const loader::Reallocation& machine, loader::LoaderStep step, Memo& memo,
                    std::set<JobId>& restarted) {
    while (!step.queues.told.empty()) {
      const JobId first = *step.queues.told.begin();
      restarted.insert(first);
      step = machine.Paused(std::move(step.queues), first);
    }
    memo.queues = std::move(step.queues);
    for (const JobId job : memo.queues.finished) {
      memo.queues.jobs.erase(job);
    }
    memo.queues.finished.clear();
  }

  [[nodiscard]] Proposal ProposalFor(const Snapshot& snapshot, const Memo& memo,
                                     const std::set<JobId>& restarted) const {
    Proposal proposal;
    for (const JobId job : memo.queues.running) {
      if (std::find(memo.departed.begin(), memo.departed.end(), job) != memo.departed.end()) {
        continue;
      }
      const JobSpec& spec = snapshot.jobs->spec(job);
      proposal.demands.push_back(
          {.job = job,
           .gpus = spec.gpus,
           .slices =
               loader::WithWorkers(PlaceOf(job, snapshot, memo), memo.queues.jobs.at(job).workers),
           .sharing = loader::DevicesOf(spec).empty() ? Sharing::kExclusive : Sharing::kCollocated,
           .restart = settings_.restarts && restarted.contains(job)});
    }
    std::vector<Slices*> slices;
    for (Demand& demand : proposal.demands) {
      slices.push_back(&demand.slices);
    }
    loader::ShareCores(*snapshot.cluster, slices);
    if (!memo.departed.empty()) {
      proposal.wake_at = memo.first_departure + settings_.finish_buffer;
    }
    return proposal;
  }

  const TorchloaderSettings settings_;
  const loader::LoaderProfiles* const profiles_;
};

Result<Components> MakeTorchloader(const Options& options, const ComponentContext& context) {
  loader::DivisionOptions division = loader::DivisionOptionsOf(options);
  division.published = options.Text("predictions") == "published";
  const TorchloaderSettings settings{
      .division = division,
      .mode = static_cast<loader::ReallocationMode>(options.Text("mode").front() - '0'),
      .finish_buffer = FromSeconds(options.Number("finish_buffer")),
      .restarts = options.Text("change") == "restart"};
  return Components{.policy = std::make_unique<Torchloader>(settings, context.loader)};
}

}  // namespace

ComponentEntry TorchloaderEntry() {
  return {ComponentKind::kPolicy,
          "torchloader",
          "jobs on the GPUs that their users name; divides the cores as loader workers",
          kTorchloaderOptions,
          MakeTorchloader,
          {},
          "gandiva"};
}

}  // namespace trainyard::policies
