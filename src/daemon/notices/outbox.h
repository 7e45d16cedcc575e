// SPDX-License-Identifier: Apache-2.0
// Notices on their way to one destination: kept on disk until they have arrived, and tried again
// and again, by a thread of its own. A notice arrives at least once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "io/descriptor.h"
#include "live/notices/notices.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

class Outbox {
 public:
  // Takes one notice, as JSON in one line, to where it is to go; may take its time. Error: it has
  // not arrived.
  using Deliver = std::function<Status(const live::Notice& notice, const std::string& json)>;

  struct Options {
    std::string file;  // what has not arrived lies there; its folder is made
    std::string name;  // of the destination, for the log
    std::function<void(const std::string& line)> log{};  // may be empty
    std::size_t most = 10'000;  // notices on their way; beyond that the oldest are given up
    std::chrono::milliseconds first_pause{1'000};
    std::chrono::milliseconds longest_pause{300'000};
    std::chrono::milliseconds patience{std::chrono::hours(24)};  // with one notice
  };

  // Reads what an earlier one has left. Errors: the file cannot be made or read.
  [[nodiscard]] static Result<std::unique_ptr<Outbox>> Open(Options options, Deliver deliver);
  ~Outbox();  // what has not arrived stays in the file
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Never waits for the destination. What was put before, by an earlier one too, is passed over;
  // and so is, in a new file, what comes before Begin().
  void Put(const live::Notice& notice);
  // The controller has gone through its journal: from now on notices are news.
  void Begin();

 private:
  struct Waiting {
    live::Notice notice;
    std::string json;
  };

  Outbox(Options options, Deliver deliver);
  [[nodiscard]] Status Read();
  void TakeLine(const std::string& line);
  [[nodiscard]] bool IsKnown(const live::Notice& notice) const;
  void Know(const live::Notice& notice);
  void Append(const std::string& line);
  void Rewrite();
  void Run();
  [[nodiscard]] bool DeliverFirst(Waiting first);
  void Log(const std::string& line) const;

  const Options options_;
  const Deliver deliver_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool begun_ = false;
  bool is_new_ = false;
  io::Descriptor file_;
  std::size_t lines_ = 0;  // of the file
  std::deque<Waiting> waiting_;
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
