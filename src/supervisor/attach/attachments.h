// SPDX-License-Identifier: Apache-2.0
// The sessions of an attempt on its node: commands that its user has started beside a worker, and
// the input of the first worker itself (docs/design/0013-attach.md). Whatever is started here is a
// child of the supervisor: in the attempt's control group, as its user, and gone with it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/attach/session.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/worker.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class Attachments {
 public:
  using Clock = Session::Clock;

  struct Options {
    // With a launcher: the file with the controller's public key. What is to be started then needs
    // the controller's word. Empty: whoever reaches the supervisor is the job's own user.
    std::string key;
    std::function<std::vector<std::string>(int local_rank)> environment;
    mode_t mask = 0;  // of the files that commands make
  };

  // Both must outlive it.
  Attachments(const v1::StartAttempt& start, const AttemptFolder& folder, Options options);

  // What the first worker of the attempt gets, if it is on this node and its job wants any; and the
  // worker, once it runs.
  [[nodiscard]] std::optional<SessionStreams> StreamsOfWorker() const;
  void SetWorker(SessionStreams streams, pid_t pid);

  void Take(const v1::AttachOrder& order, Clock::time_point now);
  // Whether the child is none of the workers but a command of a session.
  bool NoteEnd(pid_t child, int exit_code, Clock::time_point now);
  // The same of one that this process has not started: where a container has ended with it, so do
  // the commands in that.
  void NoteOrphansEnd(pid_t child);
  [[nodiscard]] Session::Answers Serve(Clock::time_point now);
  // At the attempt's end: answers all calls with what there is.
  [[nodiscard]] Session::Answers Close(Clock::time_point now);
  // Whether processes of this session belong to a command that was started here.
  [[nodiscard]] bool Has(pid_t session) const;
  void AddAwaited(std::vector<pollfd>& polls) const;
  [[nodiscard]] std::optional<Clock::time_point> NextDue() const;

 private:
  struct Command {
    Session session;
    int local_rank = 0;
    std::optional<Clock::time_point> kill_at;  // it has been hung up
  };

  void Open(const v1::AttachOrder& order, Clock::time_point now);
  [[nodiscard]] Status CheckOpen(const v1::AttachOrder& order) const;
  [[nodiscard]] WorkerCommand CommandOf(const v1::AttachRequest& request,
                                        const SessionStreams& streams) const;
  [[nodiscard]] int LocalRankOf(const v1::AttachRequest& request) const;
  void Refuse(const v1::AttachOrder& order, ErrorCode code, const std::string& why);
  void RefuseToStart(const v1::AttachOrder& order, const StartFailure& failure);
  [[nodiscard]] bool Runs(int local_rank) const;
  void CleanUpContainers();
  void HangUp(Clock::time_point now);

  const v1::StartAttempt& start_;
  const AttemptFolder& folder_;
  const Options options_;
  std::optional<Session> worker_;
  std::map<std::string, Command> commands_;  // by the names of their sessions
  std::vector<int> closed_;                  // workers whose containers have ended
  std::vector<std::string> over_;            // names that are not to be used again
  Session::Answers answers_;
};

}  // namespace trainyard::supervisor
