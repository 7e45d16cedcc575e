// SPDX-License-Identifier: Apache-2.0
// The agent of one node as a deterministic state machine: what its controller says and what its
// attempts do goes in; orders to the processes and reports to the controller come out. It has no
// clock, thread, file or socket of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "live/data/data_cache.h"
#include "supervisor/data/data_store.h"
#include "supervisor/processes.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::live {

class Agent {
 public:
  // `node` describes this node, with the room for copies of data sets and the bandwidth of fetches;
  // the agent fills in its attempts and the copies that it has. Messages that cannot be sent may be
  // dropped by `send`. `processes` and `store` must outlive the agent; without room for copies
  // `store` may be null.
  Agent(v1::Hello node, supervisor::Processes& processes,
        std::function<void(v1::AgentMessage)> send, supervisor::DataStore* store = nullptr);

  // Finds the attempts of an earlier agent of this node.
  void Begin();

  void OnConnected(TimePoint now);
  void OnMessage(const v1::ControllerMessage& message, TimePoint now);
  void OnDisconnected();
  // The processes or the store have something to report.
  void OnReports();
  // A timer has come.
  void OnTime(TimePoint now);
  // When OnTime must be called at the latest.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  // Why the controller has refused the agent, once it has.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  void Fetch(const v1::FetchData& fetch);
  void TakeFetches();
  [[nodiscard]] bool RefreshData();
  void TellData();
  void Start(const v1::StartAttempt& start);
  void Stop(const v1::AttemptId& id, Duration grace);
  void Tune(const v1::TuneAttempt& tune);
  void Forget(const v1::AttemptId& id);
  void ReadLog(const v1::ReadLog& request);
  void Attach(const v1::AttachOrder& order);
  void Report(const v1::AttemptReport& report);
  void RepeatEnds();
  [[nodiscard]] bool IsForgotten(const v1::AttemptId& id) const;
  void ReportGone(const v1::AttemptId& id, const std::string& why);
  [[nodiscard]] Status CheckStart(const v1::StartAttempt& start) const;
  [[nodiscard]] bool MayRun(const v1::StartAttempt& start) const;
  [[nodiscard]] bool MayShare(const v1::AttemptId& id, const supervisor::AttemptKey& other) const;
  void RenewLease(TimePoint sent, TimePoint now);

  v1::Hello node_;
  supervisor::Processes& processes_;
  std::function<void(v1::AgentMessage)> send_;

  DataCache data_;
  std::map<supervisor::AttemptKey, v1::AttemptReport> attempts_;  // not forgotten
  std::map<supervisor::AttemptKey, std::set<supervisor::AttemptKey>>
      beside_;  // attempts that may share its GPUs, as its order said
  std::map<supervisor::AttemptKey, std::int64_t> tuned_;  // the last order
  // By job: the last attempt that is forgotten. An order for it, or for one before, is an old one.
  std::map<std::uint64_t, std::uint32_t> forgotten_;
  std::uint64_t epoch_ = 0;  // the highest seen
  bool connected_ = false;
  Duration heartbeat_{0};  // 0: not welcomed yet
  Duration lease_{0};
  std::uint64_t beats_ = 0;
  std::map<std::uint64_t, TimePoint> sent_;  // heartbeats without an answer
  TimePoint next_beat_ = kEndOfTime;
  Duration grace_{0};
  std::string refusal_;
};

}  // namespace trainyard::live
