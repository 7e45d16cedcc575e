// SPDX-License-Identifier: Apache-2.0
// The copies of data sets on one node's disk, fetched from where the data sets are at home. Behind
// this lie files and rsync or, in the fault simulator, pretended ones. What is kept and what has to
// go is the agent's to decide (live/data/data_cache.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Whether agents fetch the data set. Homes without a slash are names that only simulations know.
[[nodiscard]] inline bool IsFetched(const v1::DataSet& data) {
  return data.home().find('/') != std::string::npos;
}

// Where the workers of the attempt find its data set: this node's copy, or its home. Empty: it has
// none that agents fetch.
[[nodiscard]] inline std::string DataFolderOf(const v1::StartAttempt& start) {
  if (!start.has_data_set() || !IsFetched(start.data_set())) {
    return {};
  }
  return start.data_folder().empty() ? start.data_set().home() : start.data_folder();
}

// Nothing of the attempt has been started; its data set is fetched, or is there.
[[nodiscard]] inline bool IsBeforeStart(const v1::AttemptReport& report) {
  return report.state() == v1::AttemptReport::FETCHING ||
         report.state() == v1::AttemptReport::READY;
}

// How far a fetch is.
struct FetchReport {
  std::string name;      // of the data set
  double fetched = 0;    // part of it that is here, 0 to 1
  bool ended = false;    // no other report comes of this fetch
  std::int64_t mib = 0;  // ended without error: the size of the copy
  // Ended with an error: what has come is kept, for another try.
  std::string error{};
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
};

class DataStore {
 public:
  virtual ~DataStore() = default;

  // What is there when an agent starts: whole copies (DataCopy::mib > 0) and begun ones.
  [[nodiscard]] virtual std::vector<v1::DataCopy> Recover() = 0;
  // Begins to fetch the data set, or goes on with what is there of it. What comes of it is told as
  // reports. REQUIRES: there is no whole copy, and no fetch of that name is under way.
  virtual void Fetch(const v1::DataSet& data) = 0;
  // The copy, whole or begun, is gone when the call comes back. REQUIRES: it is not being fetched.
  virtual void Remove(const std::string& name) = 0;
  // Where the files of a whole copy are.
  [[nodiscard]] virtual std::string FolderOf(const std::string& name) const = 0;
  // Reports that have come since the last call: of progress at most one a second for each fetch,
  // and the end.
  [[nodiscard]] virtual std::vector<FetchReport> TakeReports() = 0;
};

}  // namespace trainyard::supervisor
