// SPDX-License-Identifier: Apache-2.0
// Engine, live world and journal put together: what a controller is, less its clock, its threads,
// its sockets and its disk, which are given. The fault simulator runs this very code.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/journal.h"
#include "live/live_world.h"
#include "live/section.h"
#include "store/log.h"
#include "trainyard/version.h"

namespace trainyard::live {

// When the state is written down, so that a restart need not go through the whole journal.
struct SnapshotRules {
  std::uint64_t entries = 5000;  // of the journal since the last one; 0: never, none is read
  Duration interval = std::chrono::hours(1);  // engine time since the last one, and an entry
  // Forgets entries that the last two snapshots do not need.
  bool compact = false;
  // The program that writes snapshots: version and plug-ins. Snapshots of other programs are read
  // only if the journal before them is gone.
  std::string program = TRAINYARD_VERSION;
};

struct ControllerSetup {
  engine::EngineSetup engine{};
  LiveOptions live{};
  SnapshotRules snapshots{};
  // Jobs end when the engine foresees it, whatever their workers say. For workers that only
  // pretend.
  bool ends_by_rule = false;
  // When an earlier controller was there last, as far as that is known. Attempts ended when their
  // leases did: from then on their jobs have no GPUs.
  std::optional<TimePoint> absent_since{};
  // The program that has written the journal last, where that is another one: what it has decided
  // is then taken as it is, should this one decide otherwise. Empty: it is this one, and no journal
  // may differ.
  std::string former_program{};
};

// Where a controller has begun.
struct RestartReport {
  std::uint64_t snapshot = 0;  // the entry of the snapshot; 0: none
  std::uint64_t replayed = 0;  // entries after it
  // Where the former program has first decided otherwise than this one would, in words. Empty:
  // nowhere, or there was none.
  std::string difference{};
  // Jobs that ran and have lost their GPUs, or got others, by what this program has then decided
  // at once.
  std::vector<JobId> displaced{};
  std::vector<JobId> started{};  // by the same, others
  // What is wrong with newer snapshots, and that there can be none.
  std::vector<std::string> remarks;
};

class Controller {
 public:
  // Reads the newest snapshot that can be read, goes through the store's journal from there and is
  // then where the last controller was: each decision is made again and compared with what is
  // written, or taken from there where another program has made it otherwise. Everything must
  // outlive the controller. Errors: the store's; a journal that another version or set-up has
  // written, with the time of the first difference.
  [[nodiscard]] static Result<std::unique_ptr<Controller>> Open(ControllerSetup setup,
                                                                store::Log& store,
                                                                LiveOutput& output, TimePoint now);

  // Where calls and messages go.
  [[nodiscard]] LiveWorld& world() { return world_; }
  // Deals with everything that has come in by `now` (a time before the last is taken for the last).
  // What is said to clients and agents is on disk before. An error is final: a policy has proposed
  // something illegal. A snapshot, where one is due, comes last.
  [[nodiscard]] Status Step(TimePoint now);
  // When Step must be called at the latest.
  [[nodiscard]] std::optional<TimePoint> next_wakeup() const;
  // The same, but for what agents keep it waiting for.
  [[nodiscard]] std::optional<TimePoint> next_instant() const;
  [[nodiscard]] const engine::Engine& engine() const { return engine_; }
  // The digest of the journal: of all that has happened. The same after a restart.
  [[nodiscard]] std::string digest() const { return journal_.digest(); }
  // The digest of the engine's state, on which all that will happen depends. The same after a
  // restart. O(jobs).
  [[nodiscard]] std::string StateDigest();
  [[nodiscard]] const RestartReport& restart() const { return restart_; }
  // Why the last snapshot that was due could not be taken; empty: it was.
  [[nodiscard]] const std::string& snapshot_error() const { return snapshot_error_; }
  // Why the last decision is not on disk. Until it is, nothing is done about it and nothing else is
  // decided; Step tries again. Empty: it is.
  [[nodiscard]] const std::string& journal_error() const { return journal_error_; }
  // For tests: see ViewWriter::WhyStale. While something is not on disk, views are of before.
  [[nodiscard]] std::string WhyViewIsStale() {
    return unwritten_.empty() ? world_.WhyViewIsStale() : std::string();
  }
  // At the end: what is not on disk yet is written with what the store has set aside. False: it
  // could not be written; no client and no agent has been told of it.
  [[nodiscard]] bool Close();

 private:
  class Opening;
  class Restorer;
  struct Header;
  // What a restore may take for true.
  enum class Trust : std::uint8_t {
    kOwn,         // snapshots of this program, and decisions that it makes again
    kOtherState,  // snapshots of other programs, too
    kDecisions,   // and what they have decided
  };
  Controller(ControllerSetup setup, store::Log& store, LiveOutput& output);
  [[nodiscard]] Status Restore(std::uint64_t snapshot, Trust trust, TimePoint now);
  [[nodiscard]] Status Load(std::uint64_t snapshot, Trust trust);
  [[nodiscard]] Status Replay(Trust trust, TimePoint now);
  [[nodiscard]] Status GoOn(TimePoint last, bool upgrades);
  [[nodiscard]] Status DecideFirst();
  [[nodiscard]] Status UpgradeIsWritten() const;
  [[nodiscard]] std::string DifferenceText(const engine::ReplayWorld::Difference& difference,
                                           TimePoint at) const;
  [[nodiscard]] Status Configure(const std::string& note);
  [[nodiscard]] bool IsOver(JobId job) const;
  void SerializeJobs(std::vector<JobId>& jobs, StateStream& state);
  [[nodiscard]] std::vector<Section> Sections(int format);
  [[nodiscard]] static Status CheckSections(const Header& header,
                                            std::span<const Section> sections);
  static void SerializeState(StateStream& state, Header header, std::span<const Section> sections);
  [[nodiscard]] Status Write(std::string_view block);
  [[nodiscard]] bool WriteAgain();
  [[nodiscard]] bool SnapshotIsDue() const;
  void TakeSnapshot();
  [[nodiscard]] Status WriteSnapshot();

  const SnapshotRules rules_;
  const bool ends_by_rule_;
  const std::optional<TimePoint> absent_since_;
  const std::string former_program_;
  const Duration lease_;
  const Duration retry_pause_;  // a second of real time
  store::Log& store_;
  engine::Engine engine_;
  LiveWorld world_;
  bool restoring_ = true;
  engine::Journal journal_;
  TimePoint now_{};
  std::uint64_t entries_ = 0;         // of the journal
  std::uint64_t snapshot_entry_ = 0;  // of the last snapshot
  TimePoint snapshot_at_{};
  std::uint64_t tried_entry_ = 0;  // when the last was due
  std::vector<JobId> open_jobs_;   // those that are on no page
  std::size_t seen_jobs_ = 0;      // that are open or on a page
  RestartReport restart_;
  std::string snapshot_error_;
  std::string journal_error_;
  std::string unwritten_;  // the block of the last decision, if it is not on disk
  TimePoint retry_at_{};
  bool released_ = false;  // just now; what has come in meanwhile is for the next step
  Status status_;          // of restoring
};

}  // namespace trainyard::live
