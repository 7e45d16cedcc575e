// SPDX-License-Identifier: Apache-2.0
// Whole attempts with real processes. This program is also the supervisor of its own tests
// (`supervise FOLDER`) and the worker that speaks the job protocol (`worker ACTION...`).
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/job/job_protocol.h"
#include "supervisor/launch/launch_steps.h"
#include "supervisor/local_processes.h"
#include "supervisor/process_table.h"
#include "supervisor/unix_socket.h"
#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using v1::AttemptReport;
using v1::LaunchSpec;

// ------------------------------------------------------------------------------------- the worker

// Does one action after the other, on one connection to the job socket:
//   say:LINE    sends the line            send:TEXT   sends the text as it is
//   hear        prints the next line      hang-up     connects anew
//   random      sends random bytes and hears nothing
//   print:TEXT  exit:STATUS  wait
class ScriptedWorker {
 public:
  int Run(const std::vector<std::string>& actions) {
    Connect();
    for (const std::string& action : actions) {
      const std::size_t colon = action.find(':');
      const std::string argument =
          colon == std::string::npos ? std::string() : action.substr(colon + 1);
      Do(action.substr(0, colon), argument);
    }
    return 0;
  }

 private:
  void Connect() {
    socket_ = io::Descriptor(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, std::getenv("TRAINYARD_SOCKET"), kMaxSocketPath);
    const timeval patience{.tv_usec = 100'000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      std::perror(address.sun_path);
      std::exit(99);
    }
  }

  bool Send(const std::string& text) {
    return send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  std::string Hear() {
    std::string line;
    for (char c = 0; recv(socket_.get(), &c, 1, 0) == 1 && c != '\n';) {
      line += c;
    }
    return line;
  }

  void SendRandom() {
    std::mt19937 random(17);  // NOLINT: the same each time
    std::string bytes(40'000, '\0');
    for (int round = 0; round < 20; ++round) {
      for (char& byte : bytes) {
        byte = static_cast<char>(random());
      }
      if (!Send(bytes)) {
        return;
      }
    }
  }

  void Do(const std::string& action, const std::string& argument) {
    if (action == "say") {
      Send(argument + "\n");
    } else if (action == "say-with-ff") {  // a byte that is in no text
      Send(argument + "\xff\n");
    } else if (action == "send") {
      Send(argument);
    } else if (action == "hear") {
      std::puts(Hear().c_str());
      std::fflush(stdout);
    } else if (action == "hang-up") {
      Connect();
    } else if (action == "random") {
      SendRandom();
    } else if (action == "print") {
      std::puts(argument.c_str());
      std::fflush(stdout);
    } else if (action == "exit") {
      std::exit(std::atoi(argument.c_str()));
    } else if (action == "wait") {
      pause();
    } else {
      std::exit(98);
    }
  }

  io::Descriptor socket_;
};

// -------------------------------------------------------------------------------------- the tests

std::string ThisProgram() { return fs::read_symlink("/proc/self/exe").string(); }

template <class Condition>
bool Comes(const Condition& condition) {
  const Clock::time_point deadline = Clock::now() + seconds(100);
  while (!condition()) {
    if (Clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(milliseconds(3));
  }
  return true;
}

// Living processes that have `marker` in one of these files of theirs in /proc.
std::vector<Process> ProcessesWith(const std::string& marker,
                                   std::initializer_list<const char*> files) {
  std::vector<Process> found = AllProcesses();
  std::erase_if(found, [&](const Process& process) {
    return process.dead || std::none_of(files.begin(), files.end(), [&](const char* file) {
             const auto text = io::ReadBytes(fmt::format("/proc/{}/{}", process.pid, file));
             return text.ok() && text.value().find(marker) != std::string::npos;
           });
  });
  return found;
}

// Whether a process has `marker` among its arguments.
bool IsAlive(const std::string& marker) { return !ProcessesWith(marker, {"cmdline"}).empty(); }

// A time to sleep that no other process sleeps.
std::string UniqueSleep() {
  static int counter = 0;
  return fmt::format("{}.{}", 100'000 + getpid(), ++counter);
}

std::vector<AttemptReport::State> StatesOf(const std::vector<AttemptReport>& reports) {
  std::vector<AttemptReport::State> states;
  for (const AttemptReport& report : reports) {
    if (states.empty() || states.back() != report.state()) {
      states.push_back(report.state());
    }
  }
  return states;
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() { NewAgent(); }

  // What a test has left running: supervisors outlive their agents. All name the test's folder.
  void TearDown() override {
    processes_.reset();
    const std::string folder = fs::path(scratch_.path()).lexically_normal();
    EXPECT_TRUE(Comes([&folder] {
      const std::vector<Process> left = ProcessesWith(folder, {"cmdline", "environ"});
      for (const Process& process : left) {
        SendSignal(process, SIGKILL);
      }
      return left.empty();
    }));
  }

  // As when the agent is started again: nothing is handed over but the disk.
  void NewAgent() {
    processes_.reset();
    processes_ = MakeLocalProcesses({.state_folder = state_folder_,
                                     .program = program_,
                                     .log_limit = log_limit_,
                                     .gpu_fault = gpu_fault_,
                                     .patience = patience_,
                                     .launcher = launcher_},
                                    [] {});
  }

  // Agents have a launcher from then on: a script, which does that for each call.
  void UseLauncher(const std::string& start, const std::string& end) {
    launcher_ = state_folder_ + "/launcher";
    std::ofstream(launcher_) << fmt::format(
        "#!/bin/sh\nfolder={}/attempts/$2\ncase $1 in\nstart) {} ;;\nend) {} ;;\nesac\n",
        state_folder_, start, end);
    fs::permissions(launcher_, fs::perms::owner_all);
    NewAgent();
  }

  static v1::StartAttempt Attempt(std::uint64_t job, std::vector<std::string> command) {
    v1::StartAttempt start;
    start.mutable_id()->set_job(job);
    start.mutable_id()->set_attempt(1);
    start.mutable_launch()->mutable_command()->Assign(command.begin(), command.end());
    start.add_gpus(0);
    start.set_world_size(1);
    start.set_nodes(1);
    start.set_grace(5000);
    return start;
  }
  static v1::StartAttempt Shell(std::uint64_t job, const std::string& script) {
    return Attempt(job, {"bash", "-c", script});
  }
  static v1::StartAttempt Worker(std::uint64_t job, std::vector<std::string> actions) {
    actions.insert(actions.begin(), {ThisProgram(), "worker"});
    return Attempt(job, std::move(actions));
  }
  static v1::StartAttempt Emulated(std::uint64_t job, double iterations, double rate) {
    v1::StartAttempt start = Attempt(job, {});
    start.mutable_launch()->set_workers(LaunchSpec::EMULATED);
    start.set_iterations(iterations);
    start.set_rate(rate);
    return start;
  }

  void Take() {
    for (AttemptReport& report : processes_->TakeReports()) {
      reports_[report.id().job()].push_back(std::move(report));
    }
  }
  AttemptReport Last(std::uint64_t job) {
    Take();
    return reports_[job].empty() ? AttemptReport() : reports_[job].back();
  }
  // The report that brings it.
  template <class Condition>
  AttemptReport Await(std::uint64_t job, const Condition& condition) {
    EXPECT_TRUE(Comes([&] { return condition(Last(job)); })) << Last(job).ShortDebugString();
    return Last(job);
  }
  AttemptReport AwaitState(std::uint64_t job, AttemptReport::State state) {
    return Await(job, [state](const AttemptReport& r) { return r.state() == state; });
  }
  AttemptReport AwaitEnd(std::uint64_t job) { return AwaitState(job, AttemptReport::EXITED); }
  AttemptReport RunToEnd(const v1::StartAttempt& start) {
    processes_->Start(start);
    return AwaitEnd(start.id().job());
  }

  static v1::AttemptId Id(std::uint64_t job) { return Attempt(job, {}).id(); }
  AttemptFolder Folder(std::uint64_t job) const { return {state_folder_, Id(job)}; }
  std::string Log(std::uint64_t job, int rank = 0) {
    const Result<v1::LogsReply> reply = processes_->ReadLog(Id(job), rank, 0);
    return reply.ok() ? reply.value().data() : reply.error().message;
  }
  bool LogComes(std::uint64_t job, const std::string& text) {
    return Comes([&] { return Log(job).find(text) != std::string::npos; });
  }
  AttemptReport Recovered(std::uint64_t job) {
    for (AttemptReport& report : processes_->Recover()) {
      if (report.id().job() == job) {
        return report;
      }
    }
    return {};
  }

  ScratchFolder scratch_;
  std::string state_folder_ = fs::path(scratch_.path()).lexically_normal();
  std::string program_ = ThisProgram();
  Duration patience_ = seconds(30);
  std::string launcher_;
  std::uint64_t log_limit_ = kDefaultLogLimit;
  std::function<std::string(int)> gpu_fault_;
  std::map<std::uint64_t, std::vector<AttemptReport>> reports_;
  std::unique_ptr<Processes> processes_;
};

// ------------------------------------------------------------------------------- starting, ending

TEST_F(SupervisorTest, ACommandRunsAndItsExitCodeArrives) {
  const AttemptReport end = RunToEnd(Shell(1, "sleep 0.05; exit 7"));
  EXPECT_EQ(end.exit_code(), 7);
  EXPECT_FALSE(end.finished());
  EXPECT_EQ(end.gpus_size(), 1);
  EXPECT_EQ(StatesOf(reports_[1]), (std::vector{AttemptReport::RUNNING, AttemptReport::EXITED}));
}

// The second loop is in a grandchild whose parent does not wait for it.
TEST_F(SupervisorTest, TheLastReportHasTheCpuTimeAndMemoryOfAllProcesses) {
  const std::string loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
  const AttemptReport one = RunToEnd(Shell(1, loop));
  EXPECT_GT(one.use().cpu_micros(), 10'000);
  EXPECT_GT(one.use().peak_memory(), 500'000);
  const AttemptReport two =
      RunToEnd(Shell(2, fmt::format("(({}; : >{}/go) &); {}; while ! [ -e "
                                    "{}/go ]; do sleep 0.01; done",
                                    loop, scratch_.path(), loop, scratch_.path())));
  EXPECT_GT(two.use().cpu_micros(), one.use().cpu_micros() * 5 / 4);
  const AttemptReport memory = RunToEnd(Attempt(3, {"python3", "-c", "text = b'x' * (200 << 20)"}));
  EXPECT_GT(memory.use().peak_memory(), 200 << 20);
}

TEST_F(SupervisorTest, AnExitWithZeroWithoutNoticeIsTheEndOfTheTraining) {
  const AttemptReport end = RunToEnd(Shell(1, "true"));
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_TRUE(end.finished());
}

TEST_F(SupervisorTest, ASignalIsAnExitCodeAbove128) {
  EXPECT_EQ(RunToEnd(Shell(1, "kill -SEGV $$")).exit_code(), 128 + SIGSEGV);
}

TEST_F(SupervisorTest, ACommandThatIsNotThereIsToldBy127) {
  const AttemptReport end = RunToEnd(Attempt(1, {"no-such-trainer", "--fast"}));
  EXPECT_EQ(end.exit_code(), 127);
  EXPECT_EQ(end.message(), "command 'no-such-trainer': No such file or directory");
  EXPECT_EQ(end.cause(), AttemptReport::NO_PROGRAM);
  EXPECT_EQ(StatesOf(reports_[1]), (std::vector{AttemptReport::EXITED}));
}

TEST_F(SupervisorTest, WhatCannotBeStartedForAnotherReasonIsToldBy126) {
  v1::StartAttempt start = Shell(1, "true");
  start.mutable_launch()->set_working_directory("/no/such/folder");
  EXPECT_EQ(RunToEnd(start).message(),
            "working directory '/no/such/folder': No such file or directory");
  EXPECT_EQ(Last(1).exit_code(), 126);
  EXPECT_EQ(Last(1).cause(), AttemptReport::NO_FOLDER);
  EXPECT_EQ(RunToEnd(Attempt(2, {"/proc/version"})).exit_code(), 126);
  EXPECT_EQ(Last(2).cause(), AttemptReport::NO_PROGRAM);
  EXPECT_EQ(RunToEnd(Attempt(3, {})).message(), "the job has no command");
  EXPECT_EQ(Last(3).cause(), AttemptReport::CAUSE_UNSPECIFIED);
}

TEST_F(SupervisorTest, AProgramWithoutSupervisorIsToldBy126) {
  program_ = "/no/such/program";
  NewAgent();
  const AttemptReport end = RunToEnd(Shell(1, "true"));
  EXPECT_EQ(end.exit_code(), 126);
  EXPECT_EQ(end.message(), "'/no/such/program supervise': No such file or directory");
  EXPECT_EQ(end.cause(), AttemptReport::SPAWN);
}

TEST_F(SupervisorTest, ASupervisorThatCannotStartIsTheNodesFault) {
  program_ = "/bin/false";
  NewAgent();
  const AttemptReport end = RunToEnd(Shell(1, "true"));
  EXPECT_EQ(end.exit_code(), 126);
  EXPECT_EQ(end.message(), "no supervisor could be started");
  EXPECT_EQ(end.cause(), AttemptReport::SPAWN);
  EXPECT_FALSE(end.lost());
}

TEST_F(SupervisorTest, AStateFolderThatCannotBeWrittenIsToldBy126) {
  state_folder_ = "/proc/no-such-folder";
  NewAgent();
  const AttemptReport end = RunToEnd(Shell(1, "true"));
  EXPECT_EQ(end.exit_code(), 126);
  EXPECT_NE(end.message().find("cannot be made"), std::string::npos) << end.message();
  EXPECT_EQ(end.cause(), AttemptReport::DISK);
}

TEST_F(SupervisorTest, OnADiskThatHasBecomeFullAnEndIsToldAndLeasesGoOn) {
  state_folder_ += "/small";
  fs::create_directories(state_folder_);
  if (mount("tmpfs", state_folder_.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "not checked: this kernel does not let this user mount a file system";
  }
  NewAgent();
  processes_->SetLease(seconds(100), seconds(1));
  processes_->Start(
      Shell(1, "echo ready; while ! [ -e " + scratch_.path() + "/go ]; do sleep 0.02; done"));
  ASSERT_TRUE(LogComes(1, "ready"));
  {
    std::ofstream filler(state_folder_ + "/filler");
    while (filler << 'x' << std::flush) {
    }
  }
  processes_->SetLease(seconds(200), seconds(1));
  const std::optional<Lease> lease = ReadLease(state_folder_);
  std::ofstream(scratch_.path() + "/go") << '\n';
  const AttemptReport end = AwaitEnd(1);
  processes_->Start(Shell(2, "true"));
  const AttemptReport refused = AwaitEnd(2);
  processes_.reset();
  umount2(state_folder_.c_str(), MNT_DETACH);
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->end - TimeSinceBoot(), seconds(150));
  EXPECT_TRUE(end.finished());
  EXPECT_EQ(refused.cause(), AttemptReport::DISK);
  EXPECT_NE(refused.message().find("No space left on device"), std::string::npos);
}

TEST_F(SupervisorTest, WorkersHaveTheirOwnSessionAndOneCommonGroup) {
  v1::StartAttempt start = Shell(1, "cut -d' ' -f5,6 /proc/$$/stat");
  start.add_gpus(1);
  start.set_world_size(2);
  RunToEnd(start);
  EXPECT_EQ(Log(1, 0), Log(1, 1));
  EXPECT_EQ(Log(1, 0).find(fmt::format(" {}\n", getsid(0))), std::string::npos);
}

TEST_F(SupervisorTest, NothingOfTheAgentIsOpenInAWorker) {
  const int leak = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  RunToEnd(Shell(1, "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0"));
  close(leak);
  EXPECT_EQ(Log(1), "0 1 2 3 /dev/null\n");  // 3: the folder that ls reads
}

// ------------------------------------------------------------------------------ environment, logs

TEST_F(SupervisorTest, WorkersGetTheEnvironmentOfTorchrunAndBlox) {
  setenv("AGENT_SECRET", "s3cret", 1);
  v1::StartAttempt start = Shell(7, "env");
  start.clear_gpus();
  start.add_gpus(4);
  start.add_gpus(6);
  start.set_first_rank(2);
  start.set_world_size(6);
  start.set_node_rank(1);
  start.set_nodes(3);
  start.set_master_address("10.0.0.1");
  start.set_master_port(29500);
  start.set_iterations_done(120);
  start.mutable_share()->set_milli_cpus(3500);
  start.mutable_share()->set_loader_workers(4);
  start.mutable_data_set()->set_home("/store/pets");
  start.set_data_folder("/copies/pets");
  auto* own = start.mutable_launch()->add_environment();
  own->set_name("LEARNING_RATE");
  own->set_value("0.1 = 1e-1");
  EXPECT_EQ(RunToEnd(start).exit_code(), 0);
  const std::string log = "\n" + Log(7, 3);
  for (const std::string& line :
       std::vector<std::string>{"MASTER_ADDR=10.0.0.1",
                                "MASTER_PORT=29500",
                                "WORLD_SIZE=6",
                                "RANK=3",
                                "LOCAL_RANK=1",
                                "LOCAL_WORLD_SIZE=2",
                                "GROUP_RANK=1",
                                "NODE_RANK=1",
                                "CUDA_VISIBLE_DEVICES=4,6",
                                "local_gpu_id=6",
                                "master_ip_address=10.0.0.1",
                                "world_size=6",
                                "dist_rank=3",
                                "job_id=7",
                                "local_accessible_gpu=4,6",
                                "local_accessible_gpus=4,6",
                                "TRAINYARD_JOB=7",
                                "TRAINYARD_ATTEMPT=1",
                                "TRAINYARD_SOCKET=" + Folder(7).PathOf("job.sock"),
                                "TRAINYARD_CHECKPOINT_DIR=" + state_folder_ + "/checkpoints/7",
                                "TRAINYARD_GPUS=4,6",
                                "TRAINYARD_ITERATIONS_DONE=120",
                                "TRAINYARD_CPUS=3.5",
                                "TRAINYARD_LOADER_WORKERS=4",
                                "TRAINYARD_DATA_DIR=/copies/pets",
                                "LEARNING_RATE=0.1 = 1e-1",
                                Folder(7).Mark()}) {
    EXPECT_NE(log.find("\n" + line + "\n"), std::string::npos) << line << "\nis not in" << log;
  }
  EXPECT_EQ(log.find("AGENT_SECRET"), std::string::npos);
  EXPECT_TRUE(fs::is_directory(state_folder_ + "/checkpoints/7"));
}

TEST_F(SupervisorTest, HorovodIsToldItsPlaceAmongWorkersAndNodes) {
  v1::StartAttempt start = Shell(1, "env | grep ^HOROVOD_ | sort");
  start.add_gpus(1);
  start.set_first_rank(1);
  start.set_world_size(4);
  start.set_node_rank(1);
  start.set_nodes(3);
  for (const int workers : {1, 2, 1}) {
    start.add_node_workers(workers);
  }
  start.set_master_address("10.0.0.1");
  start.set_master_port(29500);
  RunToEnd(start);
  EXPECT_EQ(Log(1, 2),
            "HOROVOD_CONTROLLER=gloo\nHOROVOD_CPU_OPERATIONS=gloo\n"
            "HOROVOD_CROSS_RANK=0\nHOROVOD_CROSS_SIZE=1\n"
            "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1\nHOROVOD_GLOO_RENDEZVOUS_PORT=29500\n"
            "HOROVOD_LOCAL_RANK=1\nHOROVOD_LOCAL_SIZE=2\nHOROVOD_RANK=2\nHOROVOD_SIZE=4\n");
  EXPECT_NE(Log(1, 1).find("HOROVOD_CROSS_RANK=1\nHOROVOD_CROSS_SIZE=3\n"), std::string::npos);
}

TEST_F(SupervisorTest, AVirtualEnvironmentComesFirst) {
  const std::string venv = scratch_.path() + "/venv";
  fs::create_directories(venv + "/bin");
  std::ofstream(venv + "/bin/python") << "#!/bin/sh\necho $VIRTUAL_ENV ${PYTHONHOME-none} $1\n";
  v1::StartAttempt start = Attempt(1, {"python", "train.py"});
  start.mutable_launch()->set_venv(venv);
  auto* home = start.mutable_launch()->add_environment();
  home->set_name("PYTHONHOME");
  home->set_value("/usr");
  const AttemptReport refused = RunToEnd(start);  // nobody may run it yet
  EXPECT_EQ(refused.exit_code(), 127);
  EXPECT_EQ(refused.cause(), AttemptReport::NO_PROGRAM);
  EXPECT_EQ(refused.message(), "virtual environment '" + venv +
                                   "': it has no program bin/python here; expected one that is on "
                                   "each node, made by 'python3 -m venv " +
                                   venv + "'");
  fs::permissions(venv + "/bin/python", fs::perms::owner_all);
  start.mutable_id()->set_job(2);
  EXPECT_EQ(RunToEnd(start).exit_code(), 0);
  EXPECT_EQ(Log(2), venv + " none train.py\n");
}

TEST_F(SupervisorTest, WhatALauncherLeavesOnItsOwnIsOfThePath) {
  v1::StartAttempt start = Shell(1, "true");
  start.mutable_launch()->set_launcher(LaunchSpec::MPI);
  auto* path = start.mutable_launch()->add_environment();
  path->set_name("PATH");
  path->set_value("/no/such/folder");
  const AttemptReport end = RunToEnd(start);
  EXPECT_EQ(end.message(),
            "command 'mpirun' is not on the PATH; --launcher mpi needs Open MPI 4 on each node");
  EXPECT_EQ(end.cause(), AttemptReport::NO_PROGRAM);
}

// A launcher that would end its workers soon after a signal of its own, as torchrun does.
TEST_F(SupervisorTest, ANoticeIsForTheWorkersOfALauncher) {
  const std::string python = scratch_.path() + "/bin/python3";
  fs::create_directories(scratch_.path() + "/bin");
  std::ofstream(python) << "#!/bin/bash\ntrap 'echo launcher; kill -9 $!' TERM\n"
                           "bash -c 'trap \"echo saved; exit 0\" TERM; echo ready; "
                           "while true; do sleep 0.02; done' &\nwait $!\n";
  fs::permissions(python, fs::perms::owner_all);
  v1::StartAttempt start = Attempt(1, {"true"});
  start.mutable_launch()->set_launcher(LaunchSpec::TORCHRUN);
  auto* path = start.mutable_launch()->add_environment();
  path->set_name("PATH");
  path->set_value(scratch_.path() + "/bin:/usr/bin:/bin");
  processes_->Start(start);
  ASSERT_TRUE(LogComes(1, "ready"));
  processes_->Stop(Id(1), seconds(100));
  EXPECT_EQ(AwaitEnd(1).exit_code(), 0);
  EXPECT_TRUE(Log(1).ends_with("saved\n")) << Log(1);
  EXPECT_EQ(Log(1).find("launcher"), std::string::npos) << Log(1);
}

// torchrun tells of the end in many lines of its own.
TEST_F(SupervisorTest, OfALauncherThatFailsTheLastLineOfItsWorkersIsTold) {
  const std::string python = scratch_.path() + "/bin/python3";
  fs::create_directories(scratch_.path() + "/bin");
  std::ofstream(python) << "#!/bin/sh\necho ValueError: bad shape\n"
                           "echo ERROR:torch.distributed.elastic.multiprocessing.api:failed\n"
                           "echo '======'\nexit 1\n";
  fs::permissions(python, fs::perms::owner_all);
  v1::StartAttempt start = Attempt(1, {"true"});
  start.mutable_launch()->set_launcher(LaunchSpec::TORCHRUN);
  auto* path = start.mutable_launch()->add_environment();
  path->set_name("PATH");
  path->set_value(scratch_.path() + "/bin:/usr/bin:/bin");
  EXPECT_EQ(RunToEnd(start).message(),
            "worker 0 ended with exit code 1: ValueError: bad shape (trainyard logs 1 --rank 0)");
}

TEST_F(SupervisorTest, OneWorkerOfANodeSeesAllItsGpus) {
  v1::StartAttempt start = Shell(1, "echo $RANK $LOCAL_WORLD_SIZE $CUDA_VISIBLE_DEVICES");
  start.add_gpus(3);
  start.set_first_rank(1);
  start.mutable_launch()->set_workers(LaunchSpec::PER_NODE);
  RunToEnd(start);
  EXPECT_EQ(Log(1, 1), "1 1 0,3\n");
}

TEST_F(SupervisorTest, WorkersOfANodeShareOutItsGpus) {
  v1::StartAttempt start =
      Shell(1,
            "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $HOROVOD_CROSS_RANK "
            "$CUDA_VISIBLE_DEVICES ${local_gpu_id-none}");
  start.mutable_launch()->set_workers(LaunchSpec::PER_NODE);
  start.mutable_launch()->set_workers_per_node(2);
  for (const int gpu : {3, 5, 6}) {
    start.add_gpus(gpu);  // beside 0
  }
  start.set_first_rank(2);
  start.set_world_size(4);
  start.set_node_rank(1);
  start.set_nodes(2);
  start.add_node_workers(2);
  start.add_node_workers(2);
  EXPECT_EQ(RunToEnd(start).exit_code(), 0);
  EXPECT_EQ(Log(1, 2), "2/4 0/2 1 0,3,5,6 0\n");
  EXPECT_EQ(Log(1, 3), "3/4 1/2 1 0,3,5,6 5\n");
  for (int rank = 1; rank <= 4; ++rank) {
    EXPECT_EQ(fs::exists(fmt::format("{}/logs/1-1/rank-{}.log", state_folder_, rank)),
              rank == 2 || rank == 3)
        << rank;
  }
  start.mutable_id()->set_job(2);
  start.clear_gpus();
  EXPECT_EQ(RunToEnd(start).exit_code(), 0);
  EXPECT_EQ(Log(2, 3), "3/4 1/2 1\n") << "without GPUs";
}

TEST_F(SupervisorTest, LogsAreKeptPerRankAndOutliveTheAttempt) {
  v1::StartAttempt start = Shell(1, "echo out $RANK; echo err $RANK >&2");
  start.add_gpus(1);
  start.set_world_size(2);
  RunToEnd(start);
  processes_->Forget(Id(1));
  EXPECT_FALSE(fs::exists(Folder(1).path()));
  EXPECT_EQ(Log(1, 0), "out 0\nerr 0\n");
  EXPECT_EQ(Log(1, 1), "out 1\nerr 1\n");
  EXPECT_EQ(Log(1, 2), "job 1: no log of rank 2 of attempt 1 on this node");
  EXPECT_TRUE(processes_->ReadLog(Id(1), 0, 0).value().finished());
  NewAgent();
  EXPECT_TRUE(processes_->Recover().empty());
}

TEST_F(SupervisorTest, ALogIsReadInPiecesWhileItGrows) {
  processes_->Start(Shell(1, "head -c 300000 /dev/zero; read -t 30 < <(sleep 30)"));
  ASSERT_TRUE(Comes([&] {
    std::error_code error;
    return fs::file_size(Folder(1).PathOfLog(0), error) == 300'000 && !error;
  }));
  const v1::LogsReply first = processes_->ReadLog(Id(1), 0, 0).value();
  EXPECT_EQ(first.next_offset(), 262'144);
  const v1::LogsReply rest = processes_->ReadLog(Id(1), 0, first.next_offset()).value();
  EXPECT_EQ(rest.data().size(), 300'000U - 262'144U);
  EXPECT_FALSE(rest.finished());
  EXPECT_TRUE(processes_->ReadLog(Id(1), 0, 300'000).value().data().empty());
  processes_->Stop(Id(1), Duration{0});
  AwaitEnd(1);
  EXPECT_FALSE(processes_->ReadLog(Id(1), 0, 0).value().finished());
  EXPECT_TRUE(processes_->ReadLog(Id(1), 0, 300'000).value().finished());
}

TEST_F(SupervisorTest, ALogKeepsItsNewestPart) {
  log_limit_ = 1 << 20;
  NewAgent();
  RunToEnd(Shell(1, "head -c 20000000 /dev/zero; echo; echo the last line"));
  struct stat status {};
  ASSERT_EQ(stat(Folder(1).PathOfLog(0).c_str(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, log_limit_ / 2);
  EXPECT_GT(status.st_blocks * 512, log_limit_ / 8);
  std::string log;
  v1::LogsReply reply;
  do {
    reply = processes_->ReadLog(Id(1), 0, reply.next_offset()).value();
    log += reply.data();
  } while (!reply.finished());
  EXPECT_TRUE(log.starts_with("[19")) << log.substr(0, 80);
  EXPECT_NE(log.find(" bytes are gone: a log keeps its newest part only]\n"), std::string::npos);
  EXPECT_TRUE(log.ends_with("\nthe last line\n"));
  EXPECT_EQ(reply.next_offset(), 20'000'015U);
}

TEST_F(SupervisorTest, LogsOfEarlierAttemptsMakeRoomForTheNext) {
  log_limit_ = 1 << 20;
  NewAgent();
  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    v1::StartAttempt start = Shell(7, "head -c 300000 /dev/zero");
    start.mutable_id()->set_attempt(attempt);
    reports_.clear();
    RunToEnd(start);
    processes_->Forget(start.id());
  }
  RunToEnd(Shell(70, "echo another job's"));
  EXPECT_FALSE(fs::exists(state_folder_ + "/logs/7-1"));
  EXPECT_FALSE(fs::exists(state_folder_ + "/logs/7-2"));
  EXPECT_TRUE(fs::exists(state_folder_ + "/logs/7-3"));
  EXPECT_TRUE(fs::exists(state_folder_ + "/logs/7-4"));
  EXPECT_TRUE(fs::exists(state_folder_ + "/logs/70-1"));
}

// --------------------------------------------------------------------------------------- stopping

TEST_F(SupervisorTest, WhenOneWorkerFailsTheOthersAreStopped) {
  v1::StartAttempt start = Shell(1,
                                 "trap 'echo noticed; exit 0' TERM; [ $RANK = 1 ] && exit 3; "
                                 "while true; do sleep 0.02; done");
  start.add_gpus(1);
  start.set_world_size(2);
  const AttemptReport end = RunToEnd(start);
  EXPECT_EQ(end.exit_code(), 3);
  EXPECT_EQ(end.cause(), AttemptReport::CAUSE_UNSPECIFIED);
  EXPECT_FALSE(end.finished());
}

TEST_F(SupervisorTest, AFailureOnAFaultyGpuIsTheNodes) {
  gpu_fault_ = [](int gpu) { return gpu == 1 ? "GPU 1: the driver has lost it" : ""; };
  NewAgent();
  EXPECT_EQ(RunToEnd(Shell(1, "exit 3")).cause(), AttemptReport::CAUSE_UNSPECIFIED);
  v1::StartAttempt start = Shell(2, "exit 3");
  start.set_gpus(0, 1);
  const AttemptReport end = RunToEnd(start);
  EXPECT_EQ(end.cause(), AttemptReport::DEVICE);
  EXPECT_EQ(end.message(), "GPU 1: the driver has lost it");
  v1::StartAttempt good = Shell(3, "exit 0");
  good.set_gpus(0, 1);
  EXPECT_TRUE(RunToEnd(good).finished());
}

TEST_F(SupervisorTest, AFailureIsToldWithItsTimeThoughOthersHaveNotLeft) {
  v1::StartAttempt start = Shell(1,
                                 "trap '' TERM; [ $RANK = 1 ] && exit 3; "
                                 "while true; do sleep 0.02; done");
  start.add_gpus(1);
  start.set_world_size(2);
  start.set_grace(100'000);
  const double before =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  processes_->Start(start);
  const AttemptReport stopping = AwaitState(1, AttemptReport::STOPPING);
  EXPECT_EQ(stopping.exit_code(), 3);
  EXPECT_GE(stopping.failed_at(), before);
  processes_->Stop(Id(1), Duration{0});
  EXPECT_EQ(AwaitEnd(1).failed_at(), stopping.failed_at());
}

TEST_F(SupervisorTest, AStoppedWorkerMaySaveItsWorkAndLeave) {
  processes_->Start(
      Shell(1, "trap 'echo saved; exit 0' TERM; echo ready; while true; do sleep 0.02; done"));
  ASSERT_TRUE(LogComes(1, "ready"));
  processes_->Stop(Id(1), seconds(30));
  const AttemptReport end = AwaitEnd(1);
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_FALSE(end.finished());
  EXPECT_TRUE(LogComes(1, "saved"));
  EXPECT_EQ(StatesOf(reports_[1]),
            (std::vector{AttemptReport::RUNNING, AttemptReport::STOPPING, AttemptReport::EXITED}));
}

TEST_F(SupervisorTest, AWorkerThatIgnoresTheNoticeIsKilledAfterTheGrace) {
  processes_->Start(Shell(1, "trap '' TERM; echo ready; while true; do sleep 0.02; done"));
  ASSERT_TRUE(LogComes(1, "ready"));
  const Clock::time_point noticed = Clock::now();
  processes_->Stop(Id(1), milliseconds(200));
  EXPECT_EQ(AwaitEnd(1).exit_code(), 128 + SIGKILL);
  EXPECT_GE(Clock::now() - noticed, milliseconds(200));
}

TEST_F(SupervisorTest, WhoHasIgnoredTheNoticeIsTold) {
  processes_->Start(
      Worker(1, {"say:checkpoint 40", "say:no-signals", "say:lease?", "hear", "wait"}));
  Await(1, [](const AttemptReport& r) { return r.checkpointed_iterations() == 40; });
  processes_->Stop(Id(1), seconds(1));
  const std::string note = AwaitEnd(1).note();
  EXPECT_EQ(note.find("did not leave within "), 0U) << note;
  EXPECT_NE(
      note.find(" s of its notice and was killed: what came after its checkpoint of iteration "
                "40 is lost; a job that heeds SIGTERM or 'stop' saves a checkpoint and leaves"),
      std::string::npos)
      << note;
}

TEST_F(SupervisorTest, ALaterStopOnlyShortensTheGrace) {
  processes_->Start(Shell(1, "trap '' TERM; echo ready; while true; do sleep 0.02; done"));
  ASSERT_TRUE(LogComes(1, "ready"));
  processes_->Stop(Id(1), std::chrono::hours(1));
  AwaitState(1, AttemptReport::STOPPING);
  processes_->Stop(Id(1), std::chrono::hours(2));
  processes_->Stop(Id(1), Duration{0});
  EXPECT_EQ(AwaitEnd(1).exit_code(), 128 + SIGKILL);
}

TEST_F(SupervisorTest, ATermSignalToTheSupervisorIsANotice) {
  processes_->Start(Shell(1, "trap 'exit 6' TERM; echo ready; while true; do sleep 0.02; done"));
  ASSERT_TRUE(LogComes(1, "ready"));
  AwaitState(1, AttemptReport::RUNNING);
  kill(Folder(1).ReadGroup()->session, SIGTERM);
  EXPECT_EQ(AwaitEnd(1).exit_code(), 6);
}

TEST_F(SupervisorTest, AStopBeforeTheSupervisorIsUpIsNotLost) {
  processes_->Start(Shell(1, "sleep 60"));
  processes_->Stop(Id(1), Duration{0});
  EXPECT_EQ(AwaitEnd(1).exit_code(), 128 + SIGKILL);
}

TEST_F(SupervisorTest, NoProcessIsLeftWhateverAWorkerForks) {
  const std::string orphan = UniqueSleep();
  // In a session of its own, its parent gone, deaf to signals that can be ignored.
  const std::string script = "(trap '' TERM HUP; setsid sleep " + orphan +
                             " & setsid bash -c 'sleep " + orphan + " & sleep " + orphan +
                             "' &); echo ready; ";
  processes_->Start(Shell(1, script + "read -t 30 < <(sleep 30)"));
  ASSERT_TRUE(LogComes(1, "ready"));
  ASSERT_TRUE(Comes([&] { return IsAlive(orphan); }));
  processes_->Stop(Id(1), milliseconds(50));
  AwaitEnd(1);
  EXPECT_FALSE(IsAlive(orphan));

  EXPECT_EQ(RunToEnd(Shell(2, script + "exit 0")).exit_code(), 0);
  EXPECT_FALSE(IsAlive(orphan));
}

// ---------------------------------------------------------------------- agents that come and go

TEST_F(SupervisorTest, AnAgentThatIsStartedAgainFindsARunningAttempt) {
  processes_->Start(Worker(1, {"say:checkpoint 40", "say:progress 50", "hear"}));
  Await(1, [](const AttemptReport& r) { return r.iterations() == 50; });
  NewAgent();
  const AttemptReport found = Recovered(1);
  EXPECT_EQ(found.state(), AttemptReport::RUNNING);
  EXPECT_EQ(found.iterations(), 50);
  EXPECT_EQ(found.checkpointed_iterations(), 40);
  processes_->Stop(Id(1), seconds(30));
  EXPECT_EQ(AwaitEnd(1).iterations(), 50);
  EXPECT_EQ(Recovered(1).state(), AttemptReport::EXITED);
}

TEST_F(SupervisorTest, AnEndWhileNoAgentIsThereIsFound) {
  const std::string go = scratch_.path() + "/go";
  processes_->Start(Shell(1, "echo ready; while [ ! -e " + go + " ]; do sleep 0.02; done; exit 9"));
  ASSERT_TRUE(LogComes(1, "ready"));
  processes_.reset();
  static_cast<void>(scratch_.Write("go", ""));
  EXPECT_TRUE(Comes([&] {
    const auto report = Folder(1).ReadReport();
    return report.has_value() && report->state() == AttemptReport::EXITED;
  }));
  NewAgent();
  const AttemptReport found = Recovered(1);
  EXPECT_EQ(found.state(), AttemptReport::EXITED);
  EXPECT_EQ(found.exit_code(), 9);
}

TEST_F(SupervisorTest, WhenTheSupervisorIsKilledNoWorkerIsLeft) {
  const std::string worker = UniqueSleep();
  const std::string orphan = UniqueSleep();
  processes_->Start(
      Shell(1, "setsid sleep " + orphan + " & bash -c 'sleep " + worker + "; true'; true"));
  ASSERT_TRUE(Comes([&] { return IsAlive(worker) && IsAlive(orphan); }));
  AwaitState(1, AttemptReport::RUNNING);
  const std::optional<ProcessGroup> group = Folder(1).ReadGroup();
  ASSERT_TRUE(group.has_value());
  EXPECT_FALSE(MembersOf(*group).empty());
  kill(group->session, SIGKILL);
  const AttemptReport end = AwaitEnd(1);
  EXPECT_EQ(end.exit_code(), 137);
  EXPECT_EQ(end.message(), "its supervisor is gone");
  EXPECT_EQ(end.cause(), AttemptReport::SUPERVISOR_LOST);
  EXPECT_FALSE(IsAlive(worker));
  EXPECT_FALSE(IsAlive(orphan));
}

TEST_F(SupervisorTest, ASupervisorThatHangsCannotKeepItsWorkersAlive) {
  patience_ = milliseconds(50);
  NewAgent();
  const std::string worker = UniqueSleep();
  processes_->Start(Attempt(1, {"sleep", worker}));
  AwaitState(1, AttemptReport::RUNNING);
  kill(Folder(1).ReadGroup()->session, SIGSTOP);
  processes_->Stop(Id(1), milliseconds(10));
  EXPECT_EQ(AwaitEnd(1).exit_code(), 137);
  EXPECT_FALSE(IsAlive(worker));
}

TEST_F(SupervisorTest, AnAttemptWhoseFolderIsTakenAwayEnds) {
  const std::string worker = UniqueSleep();
  processes_->Start(Attempt(1, {"sleep", worker}));
  AwaitState(1, AttemptReport::RUNNING);
  const pid_t supervisor = Folder(1).ReadGroup()->session;
  fs::remove_all(Folder(1).path());
  kill(supervisor, SIGKILL);
  EXPECT_EQ(AwaitEnd(1).exit_code(), 137);
  EXPECT_FALSE(IsAlive(worker));
}

TEST_F(SupervisorTest, ASupervisorKilledWhileNoAgentWasThereIsFound) {
  const std::string orphan = UniqueSleep();
  processes_->Start(Worker(1, {"say:checkpoint 30", "say:progress 90", "hear"}));
  Await(1, [](const AttemptReport& r) { return r.iterations() == 90; });
  processes_->Start(Shell(2, "setsid sleep " + orphan + " & sleep 60"));
  AwaitState(2, AttemptReport::RUNNING);
  ASSERT_TRUE(Comes([&] { return IsAlive(orphan); }));
  processes_.reset();
  for (const std::uint64_t job : {std::uint64_t{1}, std::uint64_t{2}}) {
    kill(Folder(job).ReadGroup()->session, SIGKILL);
    EXPECT_TRUE(Comes([&] { return Folder(job).TryLock().has_value(); }));
  }
  NewAgent();
  const AttemptReport found = Recovered(1);
  EXPECT_EQ(found.state(), AttemptReport::EXITED);
  EXPECT_EQ(found.exit_code(), 137);
  EXPECT_EQ(found.checkpointed_iterations(), 30);
  EXPECT_EQ(Recovered(2).state(), AttemptReport::EXITED);
  EXPECT_FALSE(IsAlive(orphan));
}

TEST_F(SupervisorTest, WhatWasNeverStartedHasEndedAndIsNotStartedLate) {
  v1::StartAttempt start = Shell(1, "echo started");
  start.set_iterations_done(12);
  ASSERT_TRUE(Folder(1).Create(start).ok());  // and then the agent dies
  const AttemptReport found = Recovered(1);
  EXPECT_EQ(found.state(), AttemptReport::EXITED);
  EXPECT_EQ(found.exit_code(), 137);
  EXPECT_EQ(found.checkpointed_iterations(), 12);
  const std::string late = ThisProgram() + " supervise " + Folder(1).path();
  EXPECT_EQ(std::system(late.c_str()), 0);
  EXPECT_FALSE(fs::exists(Folder(1).PathOfLog(0)));
}

TEST_F(SupervisorTest, OnlyOneSupervisorStandsByAnAttempt) {
  processes_->Start(Shell(1, "echo started; sleep 60"));
  ASSERT_TRUE(LogComes(1, "started"));
  const std::string second = ThisProgram() + " supervise " + Folder(1).path();
  EXPECT_EQ(WEXITSTATUS(std::system(second.c_str())), 1);
  processes_->Stop(Id(1), Duration{0});
  AwaitEnd(1);
  EXPECT_EQ(Log(1), "started\n");
}

TEST_F(SupervisorTest, HalfMadeFoldersGoAndOthersStay) {
  fs::create_directories(state_folder_ + "/attempts/3-1.new");
  fs::create_directories(state_folder_ + "/attempts/3-2.gone");
  fs::create_directories(state_folder_ + "/attempts/notes");
  EXPECT_TRUE(processes_->Recover().empty());
  EXPECT_FALSE(fs::exists(state_folder_ + "/attempts/3-1.new"));
  EXPECT_FALSE(fs::exists(state_folder_ + "/attempts/3-2.gone"));
  EXPECT_TRUE(fs::exists(state_folder_ + "/attempts/notes"));
}

TEST_F(SupervisorTest, GarbageOnTheControlConnectionIsHarmless) {
  processes_->Start(Shell(1, "trap 'exit 4' TERM; echo ready; while true; do sleep 0.02; done"));
  ASSERT_TRUE(LogComes(1, "ready"));
  for (const std::string& garbage : {std::string(100, '\xff'), std::string("\5\0\0\0hello", 9)}) {
    const io::Descriptor socket = ConnectIn(Folder(1).path(), "control.sock");
    ASSERT_TRUE(socket.open());
    EXPECT_GT(send(socket.get(), garbage.data(), garbage.size(), 0), 0);
  }
  NewAgent();
  EXPECT_EQ(Recovered(1).state(), AttemptReport::RUNNING);
  processes_->Stop(Id(1), seconds(30));
  EXPECT_EQ(AwaitEnd(1).exit_code(), 4);
}

TEST_F(SupervisorTest, AUserWhoseJobsMayNotRunIsNoFaultOfTheNode) {
  UseLauncher("echo \"trainyard-launcher: start $2: refused: root is root\" >&2; exit 77",
              "exit 0");
  const AttemptReport refused = RunToEnd(Shell(1, "true"));
  EXPECT_EQ(refused.exit_code(), 126);
  EXPECT_EQ(refused.cause(), AttemptReport::NO_PROGRAM);
  EXPECT_NE(refused.message().find("refused: root is root"), std::string::npos);
  UseLauncher("exit 1", "exit 0");
  EXPECT_EQ(RunToEnd(Shell(2, "true")).cause(), AttemptReport::SPAWN);
}

TEST_F(SupervisorTest, WhatALauncherDoesNotEndIsToldAndHasNotEnded) {
  UseLauncher(program_ + " supervise $folder",
              "echo \"trainyard-launcher: end $2: refused: no control groups\" >&2; exit 1");
  processes_->Start(Shell(1, "exit 3"));
  const AttemptReport stuck =
      Await(1, [](const AttemptReport& report) { return !report.unended().empty(); });
  EXPECT_EQ(stuck.unended(),
            "trainyard-launcher has not ended attempt 1 of job 1: no control groups");
  EXPECT_EQ(std::count_if(reports_[1].begin(), reports_[1].end(),
                          [](const AttemptReport& report) {
                            return report.state() == AttemptReport::EXITED;
                          }),
            0);
  UseLauncher("exit 1", "exit 0");
  AttemptReport end;
  EXPECT_TRUE(Comes([&] {
    end = Recovered(1);
    return end.state() == AttemptReport::EXITED;
  }));
  EXPECT_EQ(end.exit_code(), 3);
  EXPECT_EQ(end.unended(), "");
}

TEST_F(SupervisorTest, AJobCannotSayThatItsNodeDoesNotEndIt) {
  UseLauncher("cp $folder/../../said $folder/report", "exit 0");
  AttemptReport said;
  *said.mutable_id() = Id(1);
  said.set_state(AttemptReport::EXITED);
  said.set_exit_code(4);
  said.set_unended("drain it");
  std::ofstream(state_folder_ + "/said") << said.SerializeAsString();
  processes_->Start(Shell(1, "true"));
  const AttemptReport end = AwaitEnd(1);
  EXPECT_EQ(end.exit_code(), 4);
  EXPECT_EQ(end.unended(), "");
}

TEST_F(SupervisorTest, WhoSpeaksForASupervisorCannotSaySoEither) {
  UseLauncher("until [ -e $folder/control.sock ]; do sleep 0.02; done; sleep 0.2", "exit 0");
  processes_->Start(Shell(1, "true"));
  Result<io::Descriptor> socket = ListenIn(OpenFolder(Folder(1).path()), "control.sock");
  ASSERT_TRUE(socket.ok());
  io::Descriptor agent;
  ASSERT_TRUE(Comes([&] {
    agent = io::Descriptor(accept(socket.value().get(), nullptr, nullptr));
    return agent.open();
  }));
  AttemptReport said;
  *said.mutable_id() = Id(1);
  said.set_state(AttemptReport::RUNNING);
  said.set_iterations(7);
  said.set_unended("drain it");
  const std::string bytes = Framed(said);
  EXPECT_GT(send(agent.get(), bytes.data(), bytes.size(), 0), 0);
  const AttemptReport told =
      Await(1, [](const AttemptReport& report) { return report.iterations() == 7; });
  EXPECT_EQ(told.unended(), "");
  socket.value().Close();
  agent.Close();
  EXPECT_EQ(AwaitEnd(1).unended(), "");
}

TEST_F(SupervisorTest, OnlyTheUserMayLookIntoAnAttempt) {
  processes_->Start(Shell(1, "umask; sleep 60"));
  ASSERT_TRUE(LogComes(1, "\n"));
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(Log(1), fmt::format("{:04o}\n", mask));
  const fs::perms others = fs::perms::group_all | fs::perms::others_all;
  for (const char* name : {"", "start", "lock", "control.sock", "job.sock", "supervisor.log"}) {
    EXPECT_EQ(fs::status(Folder(1).PathOf(name)).permissions() & others, fs::perms::none) << name;
  }
  processes_->Stop(Id(1), Duration{0});
  AwaitEnd(1);
}

// ----------------------------------------------------------------------------------- job protocol

TEST_F(SupervisorTest, AWorkerTellsItsProgress) {
  const AttemptReport end = RunToEnd(Worker(
      1, {"say:progress 10", "say:checkpoint 20", "say:lease?", "hear", "say:finished", "exit:5"}));
  EXPECT_EQ(end.iterations(), 20);
  EXPECT_EQ(end.checkpointed_iterations(), 20);
  EXPECT_TRUE(end.finished());
  EXPECT_EQ(end.exit_code(), 5);
  EXPECT_EQ(Log(1), "lease ok\n");
}

TEST_F(SupervisorTest, WhatAWorkerSaysLastCountsThoughItLeavesAtOnce) {
  std::vector<std::string> actions;
  for (int i = 1; i <= 200; ++i) {
    actions.push_back(fmt::format("say:progress {}.5", i));
  }
  EXPECT_EQ(RunToEnd(Worker(1, actions)).iterations(), 200.5);
}

TEST_F(SupervisorTest, AWorkerTellsItsMetrics) {
  std::vector<std::string> actions{"say:metric loss 2.5", "say:metric val/acc -1e-3",
                                   "say:metric loss 1.5", "say:metric loss", "hear"};
  for (int i = 0; i < 31; ++i) {  // 30 more go in
    actions.push_back(fmt::format("say:metric m{:02} {}", i, i));
  }
  actions.insert(actions.end(), {"hear", "say:metric loss 0.5", "say:lease?", "hear", "exit:1"});
  const AttemptReport end = RunToEnd(Worker(1, actions));
  EXPECT_EQ(Log(1),
            "error: 'metric' takes a name of 1 to 64 letters, digits, '_', '-', '.' or '/', and a "
            "number\n"
            "error: a job has 32 metrics at most\n"
            "lease ok\n");
  ASSERT_EQ(end.metrics_size(), 32);
  EXPECT_EQ(end.metrics(0).name(), "loss");
  EXPECT_EQ(end.metrics(0).value(), 0.5);
  EXPECT_EQ(end.metrics(14).name(), "m13");
  EXPECT_EQ(end.metrics(30).name(), "m29");
  EXPECT_EQ(end.metrics(31).name(), "val/acc");
  EXPECT_EQ(end.metrics(31).value(), -1e-3);
}

TEST_F(SupervisorTest, AMetricIsReportedAsItComes) {
  processes_->Start(Worker(1, {"say:metric loss 3", "hear"}));
  Await(1, [](const AttemptReport& r) { return r.metrics_size() == 1; });
  EXPECT_EQ(Last(1).state(), AttemptReport::RUNNING);
  EXPECT_EQ(Last(1).metrics(0).value(), 3);
  processes_->Stop(Id(1), Duration{0});
  AwaitEnd(1);
}

TEST_F(SupervisorTest, ANoticeReachesTheSocketAndNoSignalsMeansNone) {
  processes_->Start(Worker(1, {"say:no-signals", "say:lease?", "hear", "hear", "say:checkpoint 77",
                               "say:lease?", "hear", "hang-up", "hear", "exit:0"}));
  ASSERT_TRUE(LogComes(1, "lease ok"));
  processes_->Stop(Id(1), seconds(40));
  const AttemptReport end = AwaitEnd(1);
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_EQ(end.checkpointed_iterations(), 77);
  EXPECT_FALSE(end.finished());
  const std::string log = Log(1);
  const std::vector<std::string_view> lines = base::Split(log, "\n");
  ASSERT_EQ(lines.size(), 5U) << log;
  EXPECT_TRUE(lines[1].starts_with("stop 39.") || lines[1] == "stop 40") << lines[1];
  EXPECT_TRUE(lines[2].starts_with("lease stop ")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("stop ")) << lines[3];
}

TEST_F(SupervisorTest, AnotherShareOfTheNodeReachesTheSocketOnce) {
  v1::StartAttempt start =
      Worker(1, {"say:lease?", "hear", "hear", "hear", "hang-up", "hear", "exit:0"});
  start.mutable_share()->set_loader_workers(4);
  processes_->Start(start);
  ASSERT_TRUE(LogComes(1, "lease ok"));
  v1::TuneAttempt tune;
  *tune.mutable_id() = Id(1);
  *tune.mutable_share() = start.share();
  processes_->Tune(tune);  // it knows that
  tune.mutable_share()->set_loader_workers(2);
  processes_->Tune(tune);
  ASSERT_TRUE(LogComes(1, "loader_workers=2"));
  processes_->Tune(tune);
  NewAgent();  // what it is told again is no news
  EXPECT_EQ(Recovered(1).state(), AttemptReport::RUNNING);
  processes_->Tune(tune);
  tune.mutable_share()->set_milli_cpus(1500);
  tune.mutable_share()->set_memory_mib(1024);
  processes_->Tune(tune);
  EXPECT_EQ(AwaitEnd(1).exit_code(), 0);
  EXPECT_EQ(Log(1),
            "lease ok\ntune loader_workers=2\ntune cpus=1.5 memory_mib=1024 loader_workers=2\n"
            "tune cpus=1.5 memory_mib=1024 loader_workers=2\n");
}

TEST_F(SupervisorTest, LinesThatAreNotUnderstoodAreAnsweredAndIgnored) {
  RunToEnd(Worker(1, {"say:progress 3", "say:progress -1", "hear", "say:progress nan", "hear",
                      "say:checkpoint", "hear", "say:finished now", "hear", "say:", "hear",
                      "say:" + std::string(10'000, 'x'), "hear", "say:lease?", "hear", "exit:1"}));
  EXPECT_EQ(Last(1).iterations(), 3);
  EXPECT_FALSE(Last(1).finished());
  EXPECT_EQ(Last(1).note(),  // people are not told of each
            "said 4 lines that were not understood, the last 'finished now': 'finished' stands "
            "alone");
  EXPECT_EQ(Log(1),
            "error: 'progress' takes one number that is not negative\n"
            "error: 'progress' takes one number that is not negative\n"
            "error: 'checkpoint' takes one number that is not negative\n"
            "error: 'finished' stands alone\n"
            "error: expected hello, progress, checkpoint, metric, stage, end, note, finished, "
            "lease? or no-signals\n"
            "error: the line has more than 4096 bytes\n"
            "lease ok\n");
}

TEST_F(SupervisorTest, RandomBytesDoNotDisturbTheSupervisor) {
  std::vector<std::string> actions;
  for (int connections = 0; connections < 3; ++connections) {
    actions.insert(actions.end(), {"random", "hang-up"});
  }
  actions.insert(actions.end(), {"say:progress 6", "say:lease?", "hear", "exit:0"});
  const AttemptReport end = RunToEnd(Worker(1, actions));
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_EQ(end.iterations(), 6);
  EXPECT_EQ(Log(1), "lease ok\n");
}

TEST_F(SupervisorTest, BytesThatAreNoTextReachNoReport) {
  const AttemptReport end =
      RunToEnd(Worker(1, {"say-with-ff:note ", "hear", "say-with-ff:hello 1 ", "hear", "exit:0"}));
  EXPECT_TRUE(end.finished());
  EXPECT_EQ(
      end.note(),
      "said 2 lines that were not understood, the last 'hello 1 ?': 'hello' takes the version "
      "of the protocol, from 1, and who speaks it, in UTF-8 and at most 200 bytes");
}

TEST_F(SupervisorTest, LinesOfALaterVersionAreNoMistakeOfTheJob) {
  const AttemptReport end =
      RunToEnd(Worker(1, {"say:hello 2 library/9", "hear", "say:resize 3", "hear", "exit:0"}));
  EXPECT_EQ(end.note().find("library/9 speaks version 2"), 0U) << end.note();
}

TEST_F(SupervisorTest, ProgressIsToldAtMostOnceASecond) {
  std::vector<std::string> actions;
  for (int i = 1; i <= 20; ++i) {
    actions.insert(actions.end(), {fmt::format("say:progress {}", i), "say:lease?", "hear"});
  }
  actions.emplace_back("hear");
  processes_->Start(Worker(1, actions));
  Await(1, [](const AttemptReport& r) { return r.iterations() == 20; });
  EXPECT_LE(reports_[1].size(), 3U);  // RUNNING, the first, the last
  processes_->Stop(Id(1), Duration{0});
  AwaitEnd(1);
}

TEST_F(SupervisorTest, AStateFolderMayLieDeep) {
  state_folder_ =
      fmt::format("{}/{}/{}", scratch_.path(), std::string(90, 'a'), std::string(90, 'b'));
  NewAgent();
  processes_->Start(Worker(1, {"say:progress 8", "hear"}));
  Await(1, [](const AttemptReport& r) { return r.iterations() == 8; });
  NewAgent();
  EXPECT_EQ(Recovered(1).iterations(), 8);
  processes_->Stop(Id(1), Duration{0});
  AwaitEnd(1);
}

TEST(ProcessGroupTest, NumbersThatHaveBeenGivenOutAgainAreNotTakenForTheSame) {
  // A child's, since the leader of this process may be hidden from it (in a container).
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    [[maybe_unused]] const auto told = write(ready[1], "!", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::optional<ProcessGroup> group = ProcessGroup::Of(child);
  ASSERT_TRUE(group.has_value());
  const std::optional<ProcessGroup> own = ProcessGroup::FromText(group->ToText());
  ASSERT_TRUE(own.has_value());
  EXPECT_FALSE(MembersOf(*own).empty());
  ProcessGroup other = *own;
  other.group_start += 1;
  EXPECT_TRUE(MembersOf(other).empty());
  other = *own;
  other.session_start += 1;
  EXPECT_TRUE(MembersOf(other).empty());
  other = *own;
  other.boot += "-later";
  EXPECT_TRUE(MembersOf(other).empty());
  EXPECT_FALSE(ProcessGroup::FromText("17 4").has_value());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);

  Process self = *FindProcess(getpid());
  self.start += 1;
  SendSignal(self, SIGKILL);  // and lives on
}

// --------------------------------------------------------------------------------- stages, notes

TEST_F(SupervisorTest, TheJobsSideSaysWhatItSpeaks) {
  processes_->Start(Worker(
      1, {"say:hello 1 a test", "hear", "say:note all is well", "say:lease?", "hear", "wait"}));
  EXPECT_TRUE(LogComes(1, "hello 1\nlease ok\n"));
  Await(1, [](const AttemptReport& r) { return r.note() == "all is well"; });
  processes_->Start(Worker(2, {"say:hello 7 library/9", "hear", "wait"}));
  EXPECT_TRUE(LogComes(2, "hello 1\n"));
  Await(2, [](const AttemptReport& r) {
    return r.note() ==
           "library/9 speaks version 7 of the job protocol, this node version 1: what is newer has "
           "no effect";
  });
}

TEST_F(SupervisorTest, AJobThatTakesNoTurnsBeginsItsStagesAtOnce) {
  processes_->Start(Worker(1, {"say:stage load", "hear", "say:stage forward", "hear", "wait"}));
  EXPECT_TRUE(LogComes(1, "go load\ngo forward\n"));
}

TEST_F(SupervisorTest, JobsTakeTurnsAndOneThatHangsIsNotWaitedFor) {
  const auto with_turns = [](v1::StartAttempt start, int position) {
    start.mutable_turns()->set_position(position);
    return start;
  };
  processes_->Start(with_turns(
      Worker(1, {"say:stage forward", "hear", "hear", "say:stage load", "hear", "wait"}), 0));
  EXPECT_TRUE(LogComes(1, "go forward\n"));
  processes_->Start(with_turns(
      Worker(2, {"say:stage load", "hear", "say:stage forward", "hear", "say:end forward", "hear"}),
      2));
  EXPECT_TRUE(LogComes(2, "go load\n"));
  EXPECT_TRUE(LogComes(2, "go forward\n"));  // after the bound
  const AttemptReport late = Await(1, [](const AttemptReport& r) { return !r.late().empty(); });
  EXPECT_EQ(late.late(),
            "stage forward goes on for too long: the jobs that it interleaves with no longer wait "
            "for it");
  v1::TuneAttempt tune;  // the word for the first one to go on
  *tune.mutable_id() = Id(1);
  tune.mutable_share()->set_loader_workers(2);
  processes_->Tune(tune);
  Await(1, [](const AttemptReport& r) { return r.late().empty(); });
}

TEST_F(SupervisorTest, WhoTakesTurnsGoesOnWithoutItsAgent) {
  v1::StartAttempt first = Worker(1, {"say:stage forward", "hear", "wait"});
  first.mutable_turns()->set_position(0);
  v1::StartAttempt second = Worker(2, {"say:stage forward", "hear", "wait"});
  second.mutable_turns()->set_position(2);
  processes_->Start(first);
  EXPECT_TRUE(LogComes(1, "go forward\n"));
  processes_->Start(second);
  AwaitState(2, AttemptReport::RUNNING);
  processes_.reset();
  EXPECT_TRUE(Comes([&] {
    const Result<std::string> log = io::ReadBytes(Folder(2).PathOfLog(0));
    return log.ok() && log.value() == "go forward\n";
  }));
  NewAgent();
}

TEST(JobProtocolTest, LinesAreReadStrictly) {
  EXPECT_EQ(ParseJobLine("progress 12.5").value().number, 12.5);
  EXPECT_EQ(ParseJobLine("  checkpoint \t 1e3 ").value().kind, JobLine::Kind::kCheckpoint);
  EXPECT_EQ(ParseJobLine("no-signals").value().kind, JobLine::Kind::kNoSignals);
  EXPECT_EQ(ParseJobLine("metric \t loss  -2.5 ").value().metric, (Metric{"loss", -2.5}));
  for (const std::string& line :
       {std::string("metric"), std::string("metric loss"), std::string("metric loss nan"),
        std::string("metric loss inf"), std::string("metric lo:ss 1"), std::string("metric 1"),
        "metric " + std::string(65, 'x') + " 1", std::string("metric loss 1 2")}) {
    EXPECT_FALSE(ParseJobLine(line).ok()) << line;
  }
  EXPECT_EQ(ParseJobLine("hello 1 a b/2").value().text, "a b/2");
  EXPECT_EQ(ParseJobLine("stage communication").value().stage, v1::COMMUNICATION);
  for (const std::string& line :
       {std::string("hello"), std::string("hello 0"), std::string("hello one"),
        std::string("stage"), std::string("stage backward"), std::string("end LOAD"),
        std::string("note"), "note " + std::string(201, 'x'), std::string("note a\x1b[31m"),
        std::string("note \xc3"), std::string("hello 1 \xff"),
        "hello 1 " + std::string(201, 'x')}) {
    EXPECT_FALSE(ParseJobLine(line).ok()) << line;
  }
  for (const char* line : {"progress inf", "progress 1 2", "progress 0x10", "progress1",
                           "progress 1e999", "lease", "FINISHED", "\xff"}) {
    EXPECT_FALSE(ParseJobLine(line).ok()) << line;
  }
}

// --------------------------------------------------------------------------------------- emulated

TEST_F(SupervisorTest, AnEmulatedAttemptAdvancesAtItsRate) {
  v1::StartAttempt start = Emulated(1, 300, 1000);
  start.set_iterations_done(100);
  start.set_restart_cost_s(0.1);
  const Clock::time_point began = Clock::now();
  const AttemptReport end = RunToEnd(start);
  EXPECT_GE(Clock::now() - began, milliseconds(300));  // 0.1 s, and 200 iterations
  EXPECT_TRUE(end.finished());
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_EQ(end.iterations(), 300);
  EXPECT_EQ(reports_[1].front().state(), AttemptReport::RUNNING);
  EXPECT_EQ(reports_[1].front().iterations(), 100);
  NewAgent();
  EXPECT_TRUE(Recovered(1).finished());
}

TEST_F(SupervisorTest, AnEmulatedAttemptChangesItsRateAsItRuns) {
  processes_->Start(Emulated(1, 1e9, 1e6));
  Await(1, [](const AttemptReport& r) { return r.iterations() > 0; });
  v1::TuneAttempt tune;
  *tune.mutable_id() = Id(1);
  tune.set_rate(1e12);
  processes_->Tune(tune);
  const AttemptReport end = AwaitEnd(1);
  EXPECT_TRUE(end.finished());
  EXPECT_EQ(end.iterations(), 1e9);
}

TEST_F(SupervisorTest, AnEmulatedAttemptCheckpointsOnNotice) {
  processes_->Start(Emulated(1, 1e9, 100));
  Await(1, [](const AttemptReport& r) { return r.iterations() > 0; });
  processes_->Stop(Id(1), seconds(30));
  const AttemptReport end = AwaitEnd(1);
  EXPECT_FALSE(end.finished());
  EXPECT_EQ(end.exit_code(), 0);
  EXPECT_GT(end.iterations(), 0);
  EXPECT_EQ(end.checkpointed_iterations(), end.iterations());

  processes_->Start(Emulated(2, 1e9, 100));
  processes_->Stop(Id(2), Duration{0});
  EXPECT_EQ(AwaitEnd(2).exit_code(), 137);
  EXPECT_EQ(Last(2).checkpointed_iterations(), 0);
}

TEST_F(SupervisorTest, EmulatedAttemptsGoWithTheAgent) {
  v1::StartAttempt start = Emulated(1, 1e9, 100);
  start.set_iterations_done(5);
  processes_->Start(start);
  AwaitState(1, AttemptReport::RUNNING);
  NewAgent();
  const AttemptReport found = Recovered(1);
  EXPECT_EQ(found.state(), AttemptReport::EXITED);
  EXPECT_EQ(found.exit_code(), 137);
  EXPECT_EQ(found.checkpointed_iterations(), 5);
  EXPECT_TRUE(processes_->ReadLog(Id(1), 0, 0).value().finished());
}

TEST_F(SupervisorTest, HundredsOfEmulatedAttemptsRunAtOnce) {
  constexpr std::uint64_t kAttempts = 200;
  for (std::uint64_t job = 1; job <= kAttempts; ++job) {
    processes_->Start(Emulated(job, 100, 200));
  }
  for (std::uint64_t job = 1; job <= kAttempts; ++job) {
    EXPECT_TRUE(AwaitEnd(job).finished());
    processes_->Forget(Id(job));
  }
  EXPECT_TRUE(processes_->Recover().empty());
}

}  // namespace
}  // namespace trainyard::supervisor

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "supervise") {
    return trainyard::supervisor::RunSupervisor(arguments[1]);
  }
  if (!arguments.empty() && arguments[0] == "launch") {
    return trainyard::supervisor::RunLaunchStep(std::span(arguments).subspan(1));
  }
  if (!arguments.empty() && arguments[0] == "worker") {
    return trainyard::supervisor::ScriptedWorker().Run({arguments.begin() + 1, arguments.end()});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
