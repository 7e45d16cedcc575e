// SPDX-License-Identifier: Apache-2.0
#include "live/data/data_cache.h"

#include <algorithm>
#include <utility>

namespace trainyard::live {
namespace {

bool IsSame(const v1::DataSet& a, const v1::DataSet& b) {
  return a.name() == b.name() && a.home() == b.home() && a.mib() == b.mib();
}

}  // namespace

void DataCache::Begin() {
  if (store_ == nullptr) {
    return;
  }
  std::vector<v1::DataCopy> found = store_->Recover();
  std::stable_sort(found.begin(), found.end(), [](const v1::DataCopy& a, const v1::DataCopy& b) {
    return a.fetched_at() < b.fetched_at();
  });
  for (const v1::DataCopy& copy : found) {
    const bool is_whole = copy.mib() > 0;
    entries_[copy.set().name()] = {.set = copy.set(),
                                   .mib = is_whole ? copy.mib() : copy.set().mib(),
                                   .state = is_whole ? State::kWhole : State::kBegun,
                                   .used = ++uses_};
  }
  // There may be less room than before. What attempts use is known later, and whole copies are not
  // removed before it is.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool goes = entry->second.state == State::kBegun && taken() > room_;
    entry = goes ? Drop(entry) : std::next(entry);
  }
}

DataCache::Place DataCache::Want(supervisor::AttemptKey attempt, const v1::DataSet& data) {
  if (data.mib() > room_ || store_ == nullptr) {
    return Place::kHome;
  }
  auto entry = entries_.find(data.name());
  if (entry != entries_.end() &&
      !IsSame(entry->second.set, data)) {  // the name has another meaning
    if (!entry->second.may_go()) {
      return Place::kHome;
    }
    Drop(entry);
    entry = entries_.end();
  }
  if (entry == entries_.end()) {
    if (!MakeRoom(data.mib())) {
      return Place::kHome;
    }
    entry = entries_.emplace(data.name(), Entry{.set = data, .mib = data.mib()}).first;
  }
  Entry& known = entry->second;
  known.users.insert(attempt);
  known.used = ++uses_;
  if (known.state == State::kBegun) {
    known.state = State::kFetching;
    store_->Fetch(data);
  }
  return known.state == State::kWhole ? Place::kHere : Place::kFetching;
}

void DataCache::Use(supervisor::AttemptKey attempt, const std::string& name) {
  if (const auto entry = entries_.find(name); entry != entries_.end()) {
    entry->second.users.insert(attempt);
    entry->second.used = ++uses_;
  }
}

void DataCache::Release(supervisor::AttemptKey attempt) {
  for (auto& [name, entry] : entries_) {
    if (entry.users.erase(attempt) > 0) {
      entry.used = ++uses_;
    }
  }
}

std::int64_t DataCache::taken() const {
  std::int64_t mib = 0;
  for (const auto& [name, entry] : entries_) {
    mib += entry.mib;
  }
  return mib;
}

// Whether `mib` fit beside what may not go; they do now.
bool DataCache::MakeRoom(std::int64_t mib) {
  std::int64_t stays = 0;
  for (const auto& [name, entry] : entries_) {
    stays += entry.may_go() ? 0 : entry.mib;
  }
  if (stays + mib > room_) {
    return false;
  }
  while (taken() + mib > room_ && DropOldest()) {
  }
  return true;
}

// False: none may go.
bool DataCache::DropOldest() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.may_go() &&
        (oldest == entries_.end() || entry->second.used < oldest->second.used)) {
      oldest = entry;
    }
  }
  if (oldest == entries_.end()) {
    return false;
  }
  Drop(oldest);
  return true;
}

DataCache::Entries::iterator DataCache::Drop(Entries::iterator entry) {
  store_->Remove(entry->first);
  return entries_.erase(entry);
}

std::vector<DataCache::Change> DataCache::TakeChanges() {
  std::vector<Change> changes;
  if (store_ == nullptr) {
    return changes;
  }
  for (const supervisor::FetchReport& report : store_->TakeReports()) {
    const auto entry = entries_.find(report.name);
    if (entry == entries_.end() || entry->second.state != State::kFetching) {
      continue;
    }
    if (report.ended) {
      End(entry->second, report, changes);
      continue;
    }
    entry->second.fetched = report.fetched;
    for (const supervisor::AttemptKey& user : entry->second.users) {
      changes.push_back({.attempt = user, .name = report.name, .fetched = report.fetched});
    }
  }
  return changes;
}

void DataCache::End(Entry& entry, const supervisor::FetchReport& report,
                    std::vector<Change>& changes) {
  const bool is_here = report.error.empty();
  for (const supervisor::AttemptKey& user : entry.users) {
    changes.push_back({.attempt = user,
                       .name = report.name,
                       .fetched = report.fetched,
                       .is_here = is_here,
                       .error = report.error,
                       .cause = report.cause});
  }
  if (is_here) {
    entry.state = State::kWhole;
    entry.mib = report.mib;
    while (taken() > room_ && DropOldest()) {  // it is larger than its jobs have stated
    }
    return;
  }
  entry.state = State::kBegun;
  entry.users.clear();
  if (report.cause != v1::AttemptReport::DATA) {  // no use for another try
    Drop(entries_.find(report.name));
  }
}

std::string DataCache::FolderOf(const v1::DataSet& data) const {
  const auto entry = entries_.find(data.name());
  return entry != entries_.end() && entry->second.state == State::kWhole &&
                 IsSame(entry->second.set, data)
             ? store_->FolderOf(data.name())
             : std::string();
}

std::vector<v1::DataSet> DataCache::held() const {
  std::vector<v1::DataSet> sets;
  for (const auto& [name, entry] : entries_) {
    if (entry.state == State::kWhole) {
      sets.push_back(entry.set);
      sets.back().set_mib(entry.mib);
    }
  }
  return sets;
}

}  // namespace trainyard::live
