// SPDX-License-Identifier: Apache-2.0
// The record of a run: every batch of facts and every action, in a fixed byte form
// (docs/formats/journal.md). Its digest identifies the run; its facts reproduce it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/world.h"
#include "io/sha256.h"
#include "model/event.h"
#include "trainyard/state.h"
#include "trainyard/status.h"

namespace trainyard::engine {

class Journal {
 public:
  // Where the bytes go besides the digest; called with blocks of about 64 KiB.
  using Sink = std::function<Status(std::string_view)>;
  enum class Write : unsigned char {
    kInBlocks,   // when enough has come together: a crash loses the last steps
    kEveryStep,  // with every Commit: what has been acted upon is never lost
  };
  explicit Journal(Sink sink = nullptr, Write write = Write::kInBlocks)
      : sink_(std::move(sink)), write_(write) {}

  void Append(const model::Batch& batch);
  void Append(std::span<const model::Action> actions);
  // The batch and its actions are complete, and are about to be acted upon.
  [[nodiscard]] Status Commit();
  // Writes what is buffered. REQUIRES: called before digest().
  [[nodiscard]] Status Flush();
  // SHA-256 of all records, in hex.
  [[nodiscard]] std::string digest() const { return sha256_.Hex(); }
  // To go on with the same journal another time. REQUIRES: nothing is buffered.
  void Serialize(StateStream& state) { state(last_, sha256_); }
  // The time of the last batch.
  [[nodiscard]] TimePoint last() const { return last_; }

 private:
  Sink sink_;
  Write write_;
  std::string buffer_;
  io::Sha256 sha256_;
  TimePoint last_{};  // of the batch before
};

// The byte form of actions alone, for comparing what a replay does with what was recorded. Rates,
// debts and work of actions are not in it, nor is kPace: they follow from the rest.
[[nodiscard]] std::string EncodeActions(std::span<const model::Action> actions);

// Where in the records the last batch with kUpgraded begins: what comes before has been decided by
// another program. 0: there is none.
[[nodiscard]] std::size_t UpgradedAt(std::string_view records);

// A world that tells the facts of a journal again and refuses any action that differs.
class ReplayWorld final : public World {
 public:
  // `records` as written by Journal; must outlive the world. `last`: the time of the batch before
  // them, if they are not the whole journal. The batches in the first `followed` bytes are told
  // with what was decided on them, which is then not decided again (model::Batch::decided).
  explicit ReplayWorld(std::string_view records, TimePoint last = {}, std::size_t followed = 0)
      : rest_(records), decided_here_(records.size() - followed), last_(last) {}

  // An unreadable journal ends the replay; status() says why.
  [[nodiscard]] model::Batch Next(std::optional<TimePoint> wake_at) override;
  [[nodiscard]] Status Perform(TimePoint now, std::span<const model::Action> actions) override;
  [[nodiscard]] const Status& status() const { return status_; }

  // The actions of the step that Perform has refused.
  struct Difference {
    std::vector<model::Action> recorded{};
    std::vector<model::Action> decided{};
  };
  [[nodiscard]] const std::optional<Difference>& difference() const { return difference_; }

 private:
  std::string_view rest_;
  std::size_t decided_here_;  // the size of the rest from which on nothing is followed
  TimePoint last_{};
  Status status_;
  std::optional<Difference> difference_;
};

}  // namespace trainyard::engine
