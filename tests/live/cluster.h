// SPDX-License-Identifier: Apache-2.0
// A live cluster of real processes on this machine, which tests start, kill, start again and ask by
// the program's own commands.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard {

using Words = std::vector<std::string>;

// One start of the program. Ends with the object, at the latest, and with the thread that made it.
class Program {
 public:
  // What it says is appended to the files; the same one may be named twice.
  // `program`: the file; empty: that of this build, or of TRAINYARD_PROGRAM.
  Program(const Words& arguments, const std::string& out, const std::string& err,
          const std::string& program = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Its exit status, or 128 and the signal; none: it still runs after so long.
  [[nodiscard]] std::optional<int> Wait(std::chrono::duration<double> longest);

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct Answer {
  int status = -1;  // -1: not within five minutes
  std::string out;
  std::string err;
};

// What a worker of the fixture has written down: "KIND JOB ATTEMPT RANK PID", and more.
struct WorkerLine {
  std::string kind;
  int job = 0;
  int attempt = 0;
  int rank = 0;
  pid_t pid = 0;
  std::string rest;
};

constexpr double kShortLease = 3;  // seconds

struct LiveClusterOptions {
  int nodes = 2;
  int gpus = 2;
  Words policy = {"--policy", "fifo"};
  // On a busy machine an agent may be silent for seconds. Tests of what happens when a lease is
  // over say kShortLease.
  double lease = 30;
  double grace = 10;
  Words agent{};    // further arguments of each agent
  Words program{};  // of the controller, before its command: plug-ins
  // Other builds, as of Program.
  std::string controller_program{};
  std::string agent_program{};
};

class LiveCluster {
 public:
  // A scratch folder and a free port; nothing runs yet.
  explicit LiveCluster(LiveClusterOptions options = {});
  // Ends everything and fails the test if a process is left then.
  ~LiveCluster();
  LiveCluster(const LiveCluster&) = delete;
  LiveCluster& operator=(const LiveCluster&) = delete;

  // The controller, all agents; until every node is up.
  void Start();
  void StartController();  // until it answers
  void LaunchController();
  void AwaitController();
  void KillController();  // -9
  void StartAgent(int node);
  void KillAgent(int node);  // -9
  // `trainyard up` instead of all these.
  void StartUp();
  // For what is started from now on.
  [[nodiscard]] LiveClusterOptions& options() { return options_; }
  [[nodiscard]] Program& up() { return *up_; }
  [[nodiscard]] Program& controller() { return *controller_; }
  [[nodiscard]] Program& agent(int node) { return *agents_.at(node); }

  // The arguments of a command, with those of this cluster where it needs them.
  [[nodiscard]] Words ControllerArguments() const;
  [[nodiscard]] Words UpArguments() const;
  [[nodiscard]] Words AgentArguments(int node) const;

  // The program, run to its end. Thread-safe.
  [[nodiscard]] Answer Run(const Words& arguments) const;
  // A client's command.
  [[nodiscard]] Answer Ask(Words arguments) const;
  // With --json; fails the test if it is refused or prints anything else than such a message. For
  // requests that may arrive twice: with `patience`, a refused one is repeated for so many seconds.
  template <typename Message>
  [[nodiscard]] Message AskFor(Words arguments, double patience = 0) const {
    Message message;
    FillFromJson(std::move(arguments), patience, message);
    return message;
  }
  // The job's number; 0 and a failed test if it is refused.
  int Submit(const Words& options, const Words& command) const;
  // A worker in sh that keeps the fixture's books and then does `script` ("sleep 1").
  int SubmitWorker(const Words& options, const std::string& script) const;
  // The arguments that submit it.
  [[nodiscard]] Words WorkerWords(const Words& options, const std::string& script) const;

  [[nodiscard]] v1::JobStatus StatusOf(int job) const;
  [[nodiscard]] v1::JobState StateOf(int job) const;
  [[nodiscard]] v1::NodeStatus NodeStatus(int node) const;
  [[nodiscard]] bool AwaitState(int job, v1::JobState state) const;
  // Lines of workers, in the order in which they were written.
  [[nodiscard]] std::vector<WorkerLine> Lines() const;
  [[nodiscard]] std::vector<WorkerLine> LinesOf(int job, const std::string& kind) const;
  // So many lines of that kind.
  [[nodiscard]] bool AwaitLines(int job, const std::string& kind, std::size_t count) const;

  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const std::string& node_name(int node) const {
    return nodes_[static_cast<std::size_t>(node)];
  }
  // What controller, agents and `up` have said.
  [[nodiscard]] std::string Log(const std::string& name) const;
  // All that belong to this cluster: by their command line or their environment.
  [[nodiscard]] std::vector<std::pair<pid_t, std::string>> Processes() const;
  // Ends controller, agents and `up`; false: something is left though their leases are over.
  [[nodiscard]] bool End();

 private:
  [[nodiscard]] Words DeciderArguments(Words words) const;
  void FillFromJson(Words arguments, double patience, google::protobuf::Message& message) const;

  LiveClusterOptions options_;
  std::string folder_;
  std::string address_;
  Words nodes_;
  std::unique_ptr<Program> controller_;
  std::map<int, std::unique_ptr<Program>> agents_;
  std::unique_ptr<Program> up_;
  mutable std::atomic<int> asked_ = 0;
};

// Whether `holds` does within so many seconds.
[[nodiscard]] bool Eventually(const std::function<bool()>& holds, double seconds = 300);
[[nodiscard]] bool IsAlive(pid_t pid);
[[nodiscard]] std::string ReadAll(const std::string& path);
[[nodiscard]] std::string FreeAddress();

}  // namespace trainyard
