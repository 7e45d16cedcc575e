// SPDX-License-Identifier: Apache-2.0
// Which copies of data sets an agent keeps: a deterministic state machine over the files
// (supervisor/data/data_store.h). A copy that an attempt uses or waits for stays; of the others the
// least recently used go when there is no room for what is fetched next. What does not fit at all
// is not kept, and its attempts read it at home. A fetch that has begun goes on, whatever becomes
// of its attempts; what it has brought is kept for another try if it fails.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "supervisor/data/data_store.h"
#include "supervisor/processes.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

class DataCache {
 public:
  // Where the data set of an attempt is to be found.
  enum class Place : std::uint8_t {
    kHome,      // this node does not keep it
    kFetching,  // it will be here
    kHere,
  };
  // What has become of the fetch that an attempt waits for.
  struct Change {
    supervisor::AttemptKey attempt;
    std::string name;
    double fetched = 0;  // 0 to 1
    bool is_here = false;
    std::string error{};  // not empty: it could not be fetched, and the attempt waits no longer
    v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
  };

  // `mib`: room for all copies; 0: none are kept. `store` must outlive it, and may be null then.
  DataCache(std::int64_t mib, supervisor::DataStore* store) : room_(mib), store_(store) {}

  // Finds the copies of an earlier agent.
  void Begin();
  // The attempt will need the data set, until Release.
  [[nodiscard]] Place Want(supervisor::AttemptKey attempt, const v1::DataSet& data);
  // The attempt uses the copy of that name, if there is one, until Release.
  void Use(supervisor::AttemptKey attempt, const std::string& name);
  void Release(supervisor::AttemptKey attempt);
  // The store has something to report.
  [[nodiscard]] std::vector<Change> TakeChanges();

  // The folder of a whole copy; empty: there is none.
  [[nodiscard]] std::string FolderOf(const v1::DataSet& data) const;
  // The whole copies, by name, with their size here.
  [[nodiscard]] std::vector<v1::DataSet> held() const;

 private:
  enum class State : std::uint8_t { kBegun, kFetching, kWhole };
  struct Entry {
    v1::DataSet set;       // as its jobs state it
    std::int64_t mib = 0;  // that it takes of the room
    State state = State::kBegun;
    double fetched = 0;
    std::uint64_t used = 0;  // number of its last use
    std::set<supervisor::AttemptKey> users{};

    [[nodiscard]] bool may_go() const { return users.empty() && state != State::kFetching; }
  };
  using Entries = std::map<std::string, Entry>;

  [[nodiscard]] std::int64_t taken() const;
  [[nodiscard]] bool MakeRoom(std::int64_t mib);
  bool DropOldest();
  Entries::iterator Drop(Entries::iterator entry);
  void End(Entry& entry, const supervisor::FetchReport& report, std::vector<Change>& changes);

  const std::int64_t room_;
  supervisor::DataStore* const store_;
  Entries entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace trainyard::live
