// SPDX-License-Identifier: Apache-2.0
#include "live_tests/cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Each rank of a job holds a lock for as long as any process of it is there, so that two attempts
// at once do not stay unseen. $1 is done in the same shell.
constexpr const char* kWorker = R"(#!/bin/sh
exec 9>>"$SHARED/lock-$TRAINYARD_JOB-$RANK"
say() {
  kind=$1
  shift
  echo "$kind $TRAINYARD_JOB $TRAINYARD_ATTEMPT $RANK $$ $*" >>"$SHARED/lines"
}
flock -n 9 || {
  say TWICE
  exit 99
}
say start "$CUDA_VISIBLE_DEVICES"
eval "$1"
status=$?
say end $status
exit $status
)";

std::string NewFolder() {
  std::string pattern = (fs::temp_directory_path() / "trainyard-live-XXXXXX").string();
  return mkdtemp(pattern.data());
}

bool IsFree(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

std::string Joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

}  // namespace

// ----------------------------------------------------------------------------------------- program

Program::Program(const Words& arguments, const std::string& out, const std::string& err,
                 const std::string& program) {
  const char* const other = std::getenv("TRAINYARD_PROGRAM");
  const char* const here = other != nullptr ? other : TRAINYARD_PROGRAM;
  std::vector<char*> words = {const_cast<char*>(program.empty() ? here : program.c_str())};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) {
    return;
  }
  // Only what may be called after a fork of many threads.
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nothing
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  constexpr mode_t kMode = 0600;
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(open(out.c_str(), kAppend, kMode), STDOUT_FILENO);
  dup2(open(err.c_str(), kAppend, kMode), STDERR_FILENO);
  execv(words[0], words.data());
  _exit(127);
}

Program::~Program() {
  Signal(SIGKILL);
  static_cast<void>(Wait(seconds(30)));
}

void Program::Signal(int signal) const {
  if (!status_ && pid_ > 0) {
    kill(pid_, signal);
  }
}

std::optional<int> Program::Wait(std::chrono::duration<double> longest) {
  const auto until = steady_clock::now() + longest;
  while (!status_ && pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (steady_clock::now() > until) {
      break;
    } else {
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  return status_;
}

// ---------------------------------------------------------------------------------- start and kill

LiveCluster::LiveCluster(LiveClusterOptions options)
    : options_(std::move(options)), folder_(NewFolder()), address_(FreeAddress()) {
  for (int i = 0; i < options_.nodes; ++i) {
    nodes_.push_back(fmt::format("n{}", i));
  }
  fs::create_directory(Path("shared"));
  std::ofstream(Path("worker.sh")) << kWorker;
}

LiveCluster::~LiveCluster() {
  EXPECT_TRUE(End());
  for (const auto& [pid, what] : Processes()) {
    ADD_FAILURE() << "left: " << pid << " " << what;
    kill(pid, SIGKILL);
  }
  if (testing::Test::HasFailure()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".log") {
        fmt::print("--- {}\n{}", entry.path().filename().string(), ReadAll(entry.path()));
      }
    }
    fmt::print("--- lines\n{}", ReadAll(Path("shared/lines")));
  }
  // With the folder of a failed test that somebody wants to look into.
  if (!testing::Test::HasFailure() || std::getenv("TRAINYARD_KEEP") == nullptr) {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
}

Words LiveCluster::UpArguments() const {
  return DeciderArguments({"up", "--nodes", std::to_string(options_.nodes), "--gpus",
                           std::to_string(options_.gpus), "--state", Path("up")});
}

Words LiveCluster::ControllerArguments() const {
  Words words = options_.program;
  words.insert(words.end(),
               {"controller", "--cluster", fmt::format("{}x{}", options_.nodes, options_.gpus),
                "--state", Path("controller")});
  return DeciderArguments(std::move(words));
}

// With what `up` and `controller` have in common.
Words LiveCluster::DeciderArguments(Words words) const {
  words.insert(words.end(), {"--listen", address_, "--lease", fmt::format("{}", options_.lease),
                             "--grace", fmt::format("{}", options_.grace), "--heartbeat", "0.2"});
  words.insert(words.end(), options_.policy.begin(), options_.policy.end());
  return words;
}

Words LiveCluster::AgentArguments(int node) const {
  Words words{"agent",
              "--controller",
              address_,
              "--node",
              node_name(node),
              "--gpus",
              std::to_string(options_.gpus),
              "--state",
              Path("nodes/" + node_name(node)),
              "--checkpoints",
              Path("checkpoints")};
  words.insert(words.end(), options_.agent.begin(), options_.agent.end());
  return words;
}

void LiveCluster::Start() {
  LaunchController();
  for (int i = 0; i < options_.nodes; ++i) {
    StartAgent(i);
  }
  AwaitController();
  ASSERT_TRUE(Eventually([this] {
    const auto reply = AskFor<v1::NodesReply>({"nodes"});
    return std::all_of(reply.nodes().begin(), reply.nodes().end(),
                       [](const v1::NodeStatus& node) { return node.up(); });
  })) << "not all agents have joined";
}

void LiveCluster::StartController() {
  LaunchController();
  AwaitController();
}

void LiveCluster::LaunchController() {
  const std::string log = Path("controller.log");
  controller_.reset();
  controller_ =
      std::make_unique<Program>(ControllerArguments(), log, log, options_.controller_program);
}

void LiveCluster::AwaitController() {
  ASSERT_TRUE(Eventually([this] { return Ask({"nodes"}).status == 0; }))
      << "the controller does not answer";
}

void LiveCluster::KillController() {
  EXPECT_EQ(controller_->Wait(seconds(0)), std::nullopt) << "the controller has ended by itself";
  controller_.reset();
}

void LiveCluster::StartAgent(int node) {
  const std::string log = Path(node_name(node) + ".log");
  agents_[node].reset();
  agents_[node] = std::make_unique<Program>(AgentArguments(node), log, log, options_.agent_program);
}

void LiveCluster::KillAgent(int node) {
  EXPECT_EQ(agent(node).Wait(seconds(0)), std::nullopt) << "an agent has ended by itself";
  agents_[node].reset();
}

void LiveCluster::StartUp() {
  const std::string log = Path("up.log");
  up_.reset();
  up_ = std::make_unique<Program>(UpArguments(), log, log);
  AwaitController();
}

bool LiveCluster::End() {
  const auto stop = [](const std::unique_ptr<Program>& program) {
    if (program != nullptr) {
      program->Signal(SIGTERM);
    }
  };
  stop(up_);
  stop(controller_);
  for (const auto& [node, agent] : agents_) {
    stop(agent);
  }
  const auto wait = [](std::unique_ptr<Program>& program, const char* what) {
    if (program != nullptr) {
      EXPECT_EQ(program->Wait(seconds(300)), 0) << what << " after SIGTERM";
      program.reset();
    }
  };
  wait(up_, "up");
  wait(controller_, "the controller");
  for (auto& [node, agent] : agents_) {
    wait(agent, "an agent");
  }
  constexpr double kSlack = 300;
  return Eventually([this] { return Processes().empty(); },
                    options_.lease + options_.grace + kSlack);
}

// ------------------------------------------------------------------------------------------- calls

Answer LiveCluster::Run(const Words& arguments) const {
  const std::string name = Path(fmt::format("ask-{}", ++asked_));
  Answer answer;
  {
    Program program(arguments, name + ".out", name + ".err");
    answer.status = program.Wait(seconds(300)).value_or(-1);
  }
  answer.out = ReadAll(name + ".out");
  answer.err = ReadAll(name + ".err");
  fs::remove(name + ".out");
  fs::remove(name + ".err");
  return answer;
}

Answer LiveCluster::Ask(Words arguments) const {
  // Behind the command's name: what follows may be a job's own command.
  arguments.insert(arguments.begin() + 1, {"--controller", address_});
  return Run(arguments);
}

void LiveCluster::FillFromJson(Words arguments, double patience,
                               google::protobuf::Message& message) const {
  arguments.insert(arguments.begin() + 1, "--json");
  Answer answer;
  static_cast<void>(Eventually(
      [&] {
        answer = Ask(arguments);
        return answer.status == 0;
      },
      patience));
  google::protobuf::util::JsonParseOptions options;
  options.case_insensitive_enum_parsing = true;
  EXPECT_EQ(answer.status, 0) << Joined(arguments) << ": " << answer.err;
  if (answer.status == 0) {
    const auto parsed = google::protobuf::util::JsonStringToMessage(answer.out, &message, options);
    EXPECT_TRUE(parsed.ok()) << Joined(arguments) << ": " << parsed.ToString() << answer.out;
  }
}

int LiveCluster::Submit(const Words& options, const Words& command) const {
  Words words = {"submit"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return static_cast<int>(AskFor<v1::SubmitReply>(words).job());
}

Words LiveCluster::WorkerWords(const Words& options, const std::string& script) const {
  Words words = {"submit", "--env", "SHARED=" + Path("shared")};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "sh", Path("worker.sh"), script});
  return words;
}

int LiveCluster::SubmitWorker(const Words& options, const std::string& script) const {
  return static_cast<int>(AskFor<v1::SubmitReply>(WorkerWords(options, script)).job());
}

v1::JobStatus LiveCluster::StatusOf(int job) const {
  const auto reply = AskFor<v1::JobsReply>({"status", std::to_string(job)});
  return reply.jobs().empty() ? v1::JobStatus() : reply.jobs(0);
}

v1::JobState LiveCluster::StateOf(int job) const { return StatusOf(job).state(); }

v1::NodeStatus LiveCluster::NodeStatus(int node) const {
  const auto reply = AskFor<v1::NodesReply>({"nodes"});
  return node < reply.nodes_size() ? reply.nodes(node) : v1::NodeStatus();
}

bool LiveCluster::AwaitState(int job, v1::JobState state) const {
  return Eventually([&] { return StateOf(job) == state; });
}

// ----------------------------------------------------------------------------------------- workers

std::vector<WorkerLine> LiveCluster::Lines() const {
  std::vector<WorkerLine> lines;
  std::istringstream text(ReadAll(Path("shared/lines")));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    WorkerLine& read = lines.emplace_back();
    words >> read.kind >> read.job >> read.attempt >> read.rank >> read.pid >> std::ws;
    std::getline(words, read.rest);
  }
  return lines;
}

std::vector<WorkerLine> LiveCluster::LinesOf(int job, const std::string& kind) const {
  std::vector<WorkerLine> lines = Lines();
  std::erase_if(lines,
                [&](const WorkerLine& line) { return line.job != job || line.kind != kind; });
  return lines;
}

bool LiveCluster::AwaitLines(int job, const std::string& kind, std::size_t count) const {
  return Eventually([&] { return LinesOf(job, kind).size() >= count; });
}

std::string LiveCluster::Log(const std::string& name) const { return ReadAll(Path(name + ".log")); }

std::vector<std::pair<pid_t, std::string>> LiveCluster::Processes() const {
  std::vector<std::pair<pid_t, std::string>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos ||
        name == std::to_string(getpid())) {
      continue;
    }
    std::string command = ReadAll(entry.path() / "cmdline");
    const bool ours =
        (command + ReadAll(entry.path() / "environ")).find(folder_ + "/") != std::string::npos;
    if (ours) {
      std::replace(command.begin(), command.end(), '\0', ' ');
      found.emplace_back(std::stoi(name), command);
    }
  }
  return found;
}

// ----------------------------------------------------------------------------------------- machine

bool Eventually(const std::function<bool()>& holds, double seconds) {
  const auto until = steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!holds()) {
    if (steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

bool IsAlive(pid_t pid) { return pid > 0 && kill(pid, 0) == 0; }

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Below the ports that the kernel gives to outgoing connections: one of those, made while the
// controller is away, could take its place or even meet itself.
std::string FreeAddress() {
  constexpr int kFirst = 10'000;
  constexpr int kPorts = 10'000;
  static std::atomic<int> next = static_cast<int>(getpid()) * 7;
  int port = 0;
  do {
    port = kFirst + next++ % kPorts;
  } while (!IsFree(port));
  return fmt::format("127.0.0.1:{}", port);
}

}  // namespace trainyard
