// SPDX-License-Identifier: Apache-2.0
// A training job's side of Trainyard's job protocol (docs/job-protocol.md), for trainers in C++17
// and later: one header, the standard library and POSIX sockets.
//
// Outside a cluster, where TRAINYARD_SOCKET is not set, all calls do nothing and a trainer runs as
// it would by itself. A connection that breaks is the same: the job goes on, and SIGTERM is its
// notice.
//
//   trainyard::Job job;
//   for (long i = Restore(); i < kIterations && !job.notice(); ++i) {
//     { trainyard::Stage stage(job, "load");    batch = Next(); }
//     { trainyard::Stage stage(job, "forward"); Train(batch); }
//     job.Progress(i + 1);
//   }
//
// A Job is for one thread.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace trainyard {

class Job {
 public:
  // Connects, says hello, and takes SIGTERM as a notice from now on.
  Job() {
    if (const char* const path = std::getenv("TRAINYARD_SOCKET")) {
      Connect(path);
    }
    Terminated() = 0;
    std::signal(SIGTERM, [](int) { Terminated() = 1; });
    Say("hello 1 trainyard-cpp/1");
  }
  ~Job() { Close(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // This worker among all of the job, and among those of its node; 0 of 1 outside a cluster.
  [[nodiscard]] int rank() const { return FromEnvironment("RANK", 0); }
  [[nodiscard]] int world_size() const { return FromEnvironment("WORLD_SIZE", 1); }
  [[nodiscard]] int local_rank() const { return FromEnvironment("LOCAL_RANK", 0); }
  // This stay of the job on its GPUs, from 1; 0 outside a cluster.
  [[nodiscard]] int attempt() const { return FromEnvironment("TRAINYARD_ATTEMPT", 0); }
  // The folder for checkpoints; empty outside a cluster.
  [[nodiscard]] static std::string checkpoint_folder() {
    const char* const folder = std::getenv("TRAINYARD_CHECKPOINT_DIR");
    return folder == nullptr ? "" : folder;
  }
  [[nodiscard]] bool connected() const { return socket_ >= 0; }

  // So many iterations are done, those of earlier attempts included. One worker says so.
  void Progress(double iterations) { SayNumber("progress ", iterations); }
  // So many are safe on disk: where the next attempt will begin.
  void Checkpointed(double iterations) { SayNumber("checkpoint ", iterations); }
  // The training has reached its end; one worker of each node says so.
  void Finished() { Say("finished"); }
  // A number by which policies may judge the training: a name of 1 to 64 letters, digits and _-./,
  // a finite value.
  void Metric(const std::string& name, double value) { SayNumber("metric " + name + " ", value); }
  // A line for people, shown by `status`: at most 200 bytes.
  void Note(const std::string& text) { Say("note " + text); }

  // Seconds that are left to save a checkpoint and leave, once notice has been given; a signal
  // alone does not say how many, 0 then.
  [[nodiscard]] std::optional<double> notice() {
    Hear(std::chrono::milliseconds(0));
    if (notice_) {
      const std::chrono::duration<double> gone = Clock::now() - notice_from_;
      return std::max(0.0, *notice_ - gone.count());
    }
    return Terminated() != 0 ? std::optional(0.0) : std::nullopt;
  }
  // What the job has of this node as told last: "loader_workers", "cpus", "memory_mib",
  // "storage_kbps"; for all workers of the job here. Nothing: nobody has said.
  [[nodiscard]] std::optional<double> share(const std::string& name) {
    Hear(std::chrono::milliseconds(0));
    if (!tuned_) {
      std::string variable = "TRAINYARD_" + name;
      for (char& c : variable) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      }
      const char* const text = std::getenv(variable.c_str());
      return text == nullptr ? std::nullopt : std::optional(std::atof(text));
    }
    const auto known = share_.find(name);
    return known == share_.end() ? std::nullopt : std::optional(known->second);
  }

  // Waits until it is the job's turn for the stage: load, preprocess, forward or communication. A
  // job that does not interleave waits for one answer of its supervisor. After kPatience it goes on
  // without turns. Stage, below, ends it as well.
  void BeginStage(const std::string& name) {
    if (!turns_ || !connected()) {
      return;
    }
    going_.clear();
    Say("stage " + name);
    const Clock::time_point end = Clock::now() + kPatience;
    while (connected() && turns_ && going_ != name) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) {
        turns_ = false;
        std::cerr << "trainyard: no turn for stage " << name << " in " << kPatience.count()
                  << " s: the job goes on without turns\n";
        Note("has had no turn for too long, and goes on without turns");
        return;
      }
      Hear(left);
    }
  }
  void EndStage(const std::string& name) {
    if (turns_) {
      Say("end " + name);
    }
  }

  static constexpr std::chrono::seconds kPatience{30};

 private:
  using Clock = std::chrono::steady_clock;

  static volatile std::sig_atomic_t& Terminated() {
    static volatile std::sig_atomic_t terminated = 0;
    return terminated;
  }
  static int FromEnvironment(const char* name, int fallback) {
    const char* const text = std::getenv(name);
    return text == nullptr ? fallback : std::atoi(text);
  }

  void Connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
      return;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 &&
        connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      Close();
    }
  }
  void Close() {
    if (socket_ >= 0) {
      close(socket_);
    }
    socket_ = -1;
  }

  void SayNumber(const std::string& words, double number) {
    std::ostringstream line;
    line.precision(17);
    line << words << number;
    Say(line.str());
  }
  void Say(const std::string& text) {
    const std::string line = text + "\n";
    for (std::size_t sent = 0; connected() && sent < line.size();) {
      const ssize_t n = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return Close();
      }
      sent += static_cast<std::size_t>(n);
    }
  }

  // Takes what has come, after waiting for it so long at most.
  void Hear(std::chrono::milliseconds wait) {
    pollfd awaited{socket_, POLLIN, 0};
    if (!connected() || poll(&awaited, 1, static_cast<int>(wait.count())) <= 0) {
      return;
    }
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        Close();
      }
      return;
    }
    received_.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = received_.find('\n')) != std::string::npos;) {
      TakeLine(received_.substr(0, end));
      received_.erase(0, end + 1);
    }
  }

  void TakeLine(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "stop") {
      double seconds = 0;
      words >> seconds;
      notice_ = seconds;
      notice_from_ = Clock::now();
    } else if (word == "go") {
      words >> going_;
    } else if (word == "tune") {
      share_.clear();
      tuned_ = true;
      while (words >> word) {
        if (const std::size_t equals = word.find('='); equals != std::string::npos) {
          share_[word.substr(0, equals)] = std::atof(word.c_str() + equals + 1);
        }
      }
    } else if (word == "error:") {
      // A supervisor of 0.1.0 knows no hello and no stages.
      turns_ = turns_ && line.find("expected progress,") == std::string::npos;
      if (turns_) {
        std::cerr << "trainyard: " << line << "\n";
      }
    }
  }

  int socket_ = -1;
  std::string received_;
  std::optional<double> notice_;
  Clock::time_point notice_from_{};
  std::map<std::string, double> share_;
  bool tuned_ = false;
  bool turns_ = true;
  std::string going_;  // the stage of the last `go`
};

// A stage of an iteration, from the job's turn to the end of the scope.
class Stage {
 public:
  Stage(Job& job, std::string name) : job_(job), name_(std::move(name)) { job_.BeginStage(name_); }
  ~Stage() { job_.EndStage(name_); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  Job& job_;
  const std::string name_;
};

}  // namespace trainyard
