// SPDX-License-Identifier: Apache-2.0
// Notices on their way to one destination: kept in the controller's store until they have arrived,
// and tried again and again, by a thread of its own. A notice arrives at least once.
//
// The store is the controller's thread's: it puts what it has to tell, and what has arrived it
// takes out of the store at the next Save. If it dies before, the journal says again what has been
// put since, and what has arrived since is delivered again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "live/notices/notices.h"
#include "store/store.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

class Outbox {
 public:
  // Takes one notice, as JSON in one line, to where it is to go; may take its time. Error: it has
  // not arrived.
  using Deliver = std::function<Status(const live::Notice& notice, const std::string& json)>;

  struct Options {
    std::string name;           // of the destination, in the store and in the log
    std::string former_file{};  // of 0.2.0, which had one for each destination: it is taken over
    std::function<void(const std::string& line)> log{};  // may be empty
    std::function<void()> arrived{};  // it is time for Save; of the other thread; may be empty
    std::size_t most = 10'000;        // notices on their way; beyond that the oldest are given up
    std::chrono::milliseconds first_pause{1'000};
    std::chrono::milliseconds longest_pause{300'000};
    std::chrono::milliseconds patience{std::chrono::hours(24)};  // with one notice
  };

  // Reads what an earlier one has left. `table` must outlive it. Errors: the store's; the former
  // file cannot be read.
  [[nodiscard]] static Result<std::unique_ptr<Outbox>> Open(Options options,
                                                            store::NoticeTable& table,
                                                            Deliver deliver);
  ~Outbox();  // saves
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Never waits for the destination. What was put before, by an earlier one too, is passed over;
  // and so is, where there was none, what comes before Begin().
  void Put(const live::Notice& notice);
  // The controller has gone through its journal: from now on notices are news.
  void Begin();
  // What has been put and what has arrived is on disk afterwards; if it cannot be written, the log
  // says so, and the next call tries again.
  void Save();

 private:
  struct Waiting {
    std::uint64_t number = 0;  // in the table, from 1
    live::Notice notice;
    std::string json;
  };

  Outbox(Options options, store::NoticeTable& table, Deliver deliver);
  [[nodiscard]] Status Read();
  [[nodiscard]] Status TakeOver();
  void TakeLine(const std::string& line, std::uint64_t number);
  [[nodiscard]] bool IsKnown(const live::Notice& notice) const;
  void Know(const live::Notice& notice);
  void Keep(const Waiting& waiting);
  void Run();
  [[nodiscard]] bool DeliverFirst(Waiting first);
  void Log(const std::string& line) const;

  const Options options_;
  store::NoticeTable& table_;
  const Deliver deliver_;
  std::string save_error_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool begun_ = false;
  bool is_new_ = false;
  std::uint64_t last_number_ = 0;
  std::deque<Waiting> waiting_;
  std::vector<std::uint64_t> arrived_;  // or given up, and still in the table
  bool marked_ = true;                  // the table knows what has been put
  // What has been put: all before `last_at_`, and these of that time.
  TimePoint last_at_{Duration{-1}};
  std::set<std::string> last_keys_;

  std::thread thread_;  // last: it uses all of the above
};

// As one line of JSON: job, name, user, event, time, state, reason.
[[nodiscard]] std::string JsonOf(const live::Notice& notice);

// Runs the program with the JSON on its standard input and TRAINYARD_JOB, _NAME, _USER, _EVENT,
// _TIME, _STATE and _REASON in its environment. It has a minute.
[[nodiscard]] Outbox::Deliver ByProgram(const std::string& program);
// POSTs the JSON, by curl.
[[nodiscard]] Outbox::Deliver ByUrl(const std::string& url);

// What is wrong with the operator's options; both may be empty.
[[nodiscard]] Status CheckDestinations(const std::string& program, const std::string& url);

}  // namespace trainyard::daemon
