// SPDX-License-Identifier: Apache-2.0
// The program from outside: what works, what is refused, and with which words and exit status.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <vector>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kBadInput = 3;

const std::string kExample =
    "data/example_trace.csv --cluster data/example_cluster.toml --profiles "
    "data/example_profiles.csv";

std::string Trace(const std::string& rows) {
  return WriteScratch("trace.csv", "job_id,submit_time,gpus,duration\n" + rows);
}

TEST(SimulateTest, WritesTheThreeFiles) {
  const std::string out = ScratchPath("run");
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy srtf --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("srtf"), std::string::npos);
  const std::string jobs = ReadText(out + "/jobs.csv");
  EXPECT_EQ(jobs.substr(0, jobs.find('\n')),
            "job_id,user,queue,model,gpus_requested,submit_time,start_time,end_time,jct,"
            "queueing_delay,attained_service,preemptions,migrations,resizes,deadline,deadline_met,"
            "outcome,waiting_time,productive_time,overhead_time,useful_service,jct_alone");
  EXPECT_EQ(std::count(jobs.begin(), jobs.end(), '\n'), 401);
  EXPECT_NE(ReadText(out + "/summary.json").find("\"journal_digest\""), std::string::npos);
  EXPECT_NE(ReadText(out + "/timeline.csv").find("time,gpus_used,jobs_running,jobs_pending"),
            std::string::npos);
}

TEST(SimulateTest, PrintsJsonOnRequest) {
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy las --json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out.front(), '{');
}

TEST(SimulateTest, WritesAPageOnRequest) {
  const std::string page = ScratchPath("run.html");
  const CommandResult result =
      RunTrainyard("simulate " + kExample + " --policy las --html " + page);
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string html = ReadText(page);
  EXPECT_NE(html.find("\"format\":\"trainyard-report/2\""), std::string::npos);
  EXPECT_NE(html.find("\"gantt\":{"), std::string::npos);
}

TEST(SimulateTest, AStopRuleLeavesJobsUnfinishedWithoutComplaint) {
  const CommandResult result =
      RunTrainyard("simulate " + kExample + " --policy fifo --until 3600 --json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find("\"unfinished\": 0,"), std::string::npos);
}

TEST(SimulateTest, JobsThatNeverFinishAreAFailure) {
  const std::string trace = Trace("a,0,2,100\n");
  const std::string cluster = WriteScratch(
      "broken.toml", "[[nodes]]\ncount = 1\ngpus = 2\n[[failures]]\nnode = \"n0\"\ndown = 10\n");
  const CommandResult result = RunTrainyard("simulate " + trace + " --cluster " + cluster);
  EXPECT_EQ(result.status, kFailed);
  EXPECT_EQ(result.err,
            "backfill: 1 of 1 jobs never finished (first: job a, 2 GPUs): nothing could "
            "happen any more\n");
}

TEST(CompareTest, WritesAPageThatHoldsTheRuns) {
  const std::string out = ScratchPath("compare");
  const CommandResult result =
      RunTrainyard("compare " + kExample + " --policy fifo --policy srtf --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string page = ReadText(out + "/report.html");
  EXPECT_NE(page.find("\"trainyard-report/2\""), std::string::npos);
  EXPECT_EQ(page.find("__TRAINYARD_REPORT_DATA__"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(out + "/srtf/jobs.csv"));
}

// The names at the margin of `trainyard policies`.
std::vector<std::string> AllPolicies() {
  std::istringstream lines(RunTrainyard("policies").out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') {
      names.push_back(line.substr(0, line.find(' ')));
    }
  }
  return names;
}

TEST(CompareTest, EveryPolicyFinishesTheExample) {
  std::istringstream whole(ReadText(TRAINYARD_SOURCE_DIR "/data/example_trace.csv"));
  std::string first_jobs;
  std::string row;
  for (int i = 0; i <= 80 && std::getline(whole, row); ++i) {
    first_jobs += row + "\n";
  }
  std::vector<std::string> names = AllPolicies();
  ASSERT_GE(names.size(), 20U);
  // It drops jobs whose last steps are fewer than their GPUs, as the published program does.
  ASSERT_EQ(std::erase(names, "gavel-published"), 1U);
  std::string policies;
  for (const std::string& name : names) {
    // A search for each minute would take longer than all the others together.
    const bool solves = name.starts_with("pollux") || name.starts_with("sia");
    policies += " --policy " + name + (solves ? ":interval=3600" : "");
  }
  // Few GPUs, so that jobs have to wait.
  const std::string out = ScratchPath("every");
  const CommandResult result = RunTrainyard(
      "compare " + WriteScratch("first.csv", first_jobs) +
      " --cluster 4x8 --profiles data/example_profiles.csv --json --out " + out + policies);
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.err.ends_with("report: " + out + "/report.html\n")) << result.err;
  EXPECT_EQ(result.err.find("edf' goes by deadlines"), std::string::npos) << "jobs state them";
  const auto runs_with = [&result](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = result.out.find(text); at != std::string::npos;
         at = result.out.find(text, at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(runs_with("\"jobs\": 80,"), names.size());
  EXPECT_EQ(runs_with("\"unfinished\": 0,"), names.size());
}

TEST(UsageTest, AMistypedCommandIsNamedWithTheNearestOne) {
  const CommandResult result = RunTrainyard("simulat x");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("unknown command 'simulat'; did you mean 'simulate'?"),
            std::string::npos);
}

TEST(UsageTest, CheckIsNamedValidateHere) {
  const CommandResult result = RunTrainyard("trace check x.csv");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_EQ(result.err, "trainyard trace: unknown command 'check'; did you mean 'validate'?\n");
  EXPECT_EQ(RunTrainyard("cordon n0").err,
            "trainyard: unknown command 'cordon'; did you mean 'trainyard drain'?\n");
  EXPECT_EQ(RunTrainyard("config get").err,
            "trainyard config: unknown command 'get'; did you mean 'trainyard config show'?\n");
  // Of a command that also does something by itself.
  EXPECT_EQ(RunTrainyard("controller paus").err,
            "trainyard controller: unknown command 'paus'; did you mean 'pause'?; known: pause, "
            "resume, close, open\n");
}

TEST(UsageTest, AMistypedPolicyIsNamedWithTheNearestOne) {
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy tiresas");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("unknown policy 'tiresas'; did you mean 'tiresias'?"),
            std::string::npos);
}

TEST(UsageTest, AnOriginalsNameOutsideItsPresetIsExplained) {
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy dlas-gpu");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("preset 'tiresias' knows 'dlas-gpu' (--preset tiresias)"),
            std::string::npos);
}

TEST(UsageTest, AnUnknownOptionIsWrongUsage) {
  EXPECT_EQ(RunTrainyard("simulate " + kExample + " --polcy fifo").status, kWrongUsage);
  EXPECT_EQ(RunTrainyard("simulate " + kExample + " --policy las:quantum=soon").status,
            kWrongUsage);
  EXPECT_EQ(RunTrainyard("").status, kWrongUsage);
}

TEST(UsageTest, AJobsCommandWithoutItsMarkIsExplained) {
  const CommandResult result = RunTrainyard("submit --gpus 1 python train.py --lr 1");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_EQ(result.err,
            "trainyard submit: 'python' is no option; expected -- before the job's command: "
            "trainyard submit [OPTIONS] -- python train.py --lr 1\n");
  const CommandResult mistyped = RunTrainyard("submit --gpu 1 -- true");
  EXPECT_EQ(mistyped.status, kWrongUsage);
  EXPECT_EQ(mistyped.err.find("before the job's command"), std::string::npos) << mistyped.err;
}

// --------------------------------------------------------------------------------- configurations

CommandResult CheckController(const std::string& text, const std::string& options = "") {
  return RunTrainyard("controller --check-config --config " + WriteScratch("config.toml", text) +
                      " " + options);
}

TEST(ConfigTest, AFileHasATableForEachCommand) {
  const std::string good =
      "[controller]\ncluster = \"2x4\"\npolicy = \"srtf\"\nlease = 90\ntime-scale = 2.5\n"
      "\n[agent]\ngpus = \"4:A100\"\ncontroller = \"gpu00\"\n";
  const CommandResult controller = CheckController(good);
  EXPECT_EQ(controller.status, 0) << controller.err;
  EXPECT_EQ(controller.out, "the configuration is good\n");
  const CommandResult agent =
      RunTrainyard("agent --check-config --config " + WriteScratch("config.toml", good));
  EXPECT_EQ(agent.status, 0) << agent.err;
  EXPECT_EQ(agent.out, "the configuration is good\n");
  const CommandResult overridden = CheckController(good, "--policy strf");
  EXPECT_EQ(overridden.status, kWrongUsage) << "the command line counts";
}

TEST(ConfigTest, WhatIsWrongIsToldWithItsLine) {
  const std::string begin = "[controller]\ncluster = \"2x4\"\n";
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {begin + "polcy = \"srtf\"\n",
            ":3: unknown key in [controller] 'polcy'; did you mean 'policy'?; known: "},
           {begin + "[contoller]\n", ":3: unknown table 'contoller'; did you mean 'controller'?"},
           {begin + "[controller.nodes]\n", ":3: unknown table in [controller] 'nodes'"},
           {"policy = \"srtf\"\n" + begin, ":1: unknown key outside of the tables 'policy'"},
           {begin + "lease = 0.1\n", ":3: --lease: "},
           {begin + "lease = \"long\"\n", ":3: "},
           {begin + "listen = \"127.0.0.1:70000\"\n",
            ":3: --listen: it is '127.0.0.1:70000': '70000' is no port"},
           {begin + "policy = { name = \"srtf\" }\n", ":3: unknown table in [controller] 'policy'"},
           {begin + "[status]\nall = 1\n", ":4: 'all' is no truth value"},
           {begin + "policy = srtf\n", ":3: not TOML: "},
           {"[controller\n", ":1: not TOML: "},
           {begin + "lease = 60\nlease = 70\n", ":4: not TOML: "}}) {
    const CommandResult result = CheckController(text);
    EXPECT_EQ(result.status, kBadInput) << text << result.err;
    EXPECT_NE(result.err.find("config.toml" + what), std::string::npos) << text << result.err;
    EXPECT_EQ(result.err.find("config.toml"), result.err.rfind("config.toml")) << result.err;
    EXPECT_EQ(result.err.find("INI"), std::string::npos) << result.err;
  }
  EXPECT_EQ(RunTrainyard("controller --check-config --config no-such.toml").status, kBadInput);
}

TEST(ConfigTest, WhatCannotWorkIsRefused) {
  const std::string good = "[controller]\ncluster = \"2x4\"\n";
  for (const auto& [options, what] : std::vector<std::pair<std::string, std::string>>{
           {"--lease 5 --heartbeat 5",
            "--lease is 5.0s and --heartbeat 5.0s; expected a lease of at least two heartbeats"},
           {"--lease 9.9 --heartbeat 5", "expected a lease of at least two heartbeats"},
           {"--listen 127.0.0.1:70000", "'70000' is no port; expected a number from 0 to 65535"},
           {"--listen 127.0.0.1", "no port; expected HOST:PORT"},
           {"--journal compact --snapshot-entries 0",
            "--journal is compact and --snapshot-entries 0; expected --journal keep, or "},
           {"--operators root nobody-here",
            "--operators has 'nobody-here', and this machine knows "
            "no user of that name; expected names of users"},
           {"--admins root,daemon", "--admins has 'root,daemon', and this machine knows no user"},
           {"--state /dev/null/x", "--state is '/dev/null/x', but /dev/null is no folder"}}) {
    const CommandResult result = CheckController(good, options);
    EXPECT_EQ(result.status, kWrongUsage) << options;
    EXPECT_NE(result.err.find(what), std::string::npos) << options << result.err;
  }
  EXPECT_EQ(CheckController(good, "--lease 10 --heartbeat 5").status, 0);
  EXPECT_EQ(CheckController(good, "--operators root daemon --admins root").status, 0);
  EXPECT_EQ(CheckController(good, "--journal compact --snapshot-entries 1").status, 0);
  EXPECT_EQ(CheckController(good, "--journal keep --snapshot-entries 0").status, 0);
  const CommandResult agent = RunTrainyard(
      "agent --check-config --config " +
      WriteScratch("config.toml", "[agent]\ngpus = \"1\"\ncontroller = \"gpu00:70000\"\n"));
  EXPECT_EQ(agent.status, kBadInput);
  EXPECT_NE(agent.err.find("config.toml:3: --controller: it is 'gpu00:70000': "), std::string::npos)
      << agent.err;
  const std::string state = " --state " + ScratchPath("never");
  EXPECT_EQ(RunTrainyard("up --lease 1 --heartbeat 1" + state).status, kWrongUsage);
  EXPECT_EQ(RunTrainyard("up --listen 127.0.0.1:65536" + state).status, kWrongUsage);
  for (const std::string options :
       {"--gpus 0", "--gpus many", "--gpus 2 --controller gpu00:70000", "--gpus 2 --controller ::1",
        "--gpus 2 --address 10.0.0.1:22", "--gpus 2 --interface no-such-interface"}) {
    EXPECT_EQ(RunTrainyard("agent --check-config " + options).status, kWrongUsage) << options;
  }
  EXPECT_EQ(RunTrainyard("status --controller 127.0.0.1:65536").status, kWrongUsage);
}

TEST(UsageTest, HelpAndVersionSucceed) {
  EXPECT_EQ(RunTrainyard("--help").status, 0);
  EXPECT_EQ(RunTrainyard("simulate --help").status, 0);
  EXPECT_EQ(RunTrainyard("--version").out.rfind("trainyard ", 0), 0U);
}

struct BadTrace {
  const char* name;
  std::string rows;
  std::string message;  // after "trace.csv"
};

void PrintTo(const BadTrace& one, std::ostream* out) { *out << one.name; }

class BadInput : public testing::TestWithParam<BadTrace> {};

TEST_P(BadInput, IsRefusedWithFileAndLine) {
  const CommandResult result = RunTrainyard("simulate " + Trace(GetParam().rows) +
                                            " --cluster 1x4 --out " + ScratchPath("never"));
  EXPECT_EQ(result.status, kBadInput) << result.err;
  EXPECT_NE(result.err.find("trace.csv" + GetParam().message), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(ScratchPath("never")));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadInput,
    testing::Values(BadTrace{"NegativeGpus", "a,0,1,5\nb,0,-1,5\n", ":3: column 'gpus' is '-1'"},
                    BadTrace{"MissingDuration", "a,0,1,\n", ":2: "},
                    BadTrace{"TooManyGpus", "a,0,8,5\n", ":2: "},
                    BadTrace{"DuplicateId", "a,0,1,5\na,1,1,5\n", ":3: "},
                    BadTrace{"EmbeddedNul", std::string("a,0,1,5\nb\0,0,1,5\n", 18), ":3: "},
                    BadTrace{"WrongEncoding", "a,0,1,5\nb\xff\xfe,0,1,5\n", ":3: "},
                    BadTrace{"VeryLongLine", "a,0,1,5\n" + std::string(3'000'000, 'x') + ",0,1,5\n",
                             ":3: "},
                    BadTrace{"FieldMissing", "a,0,1\n", ":2: "}, BadTrace{"NoJobs", "", ""}),
    [](const testing::TestParamInfo<BadTrace>& one) { return one.param.name; });

TEST(BadInputTest, ATruncatedGzipIsRefused) {
  const std::string whole = Trace("a,0,1,5\nb,0,1,5\nc,0,1,5\n");
  ASSERT_EQ(
      std::system(("gzip -c " + whole + " | head -c 40 >" + ScratchPath("cut.csv.gz")).c_str()), 0);
  const CommandResult result = RunTrainyard("trace validate " + ScratchPath("cut.csv.gz"));
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_NE(result.err.find("truncated gzip"), std::string::npos) << result.err;
}

TEST(BadInputTest, SkippedRowsAreCountedAndListed) {
  const CommandResult result =
      RunTrainyard("trace validate " + Trace("a,0,1,5\nb,0,-1,5\n") + " --skip-bad-rows");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("1 jobs"), std::string::npos);
  EXPECT_NE(result.err.find(":3: column 'gpus' is '-1'"), std::string::npos);
}

TEST(TraceTest, ALogIsReadWithWhatIsLeftOutAndRoundedTold) {
  const std::string log = WriteScratch(
      "pods.csv",
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
      "deletion_time,scheduled_time\n"
      "a,4000,15258,1,220,,BE,Running,110,150,115\nb,4000,15258,0,0,,LS,Running,110,150,110\n"
      "c,4000,15258,0,0,,LS,Running,110,150,110\nd,4000,15258,2,1000,,LS,Succeeded,100,150,110\n");
  const CommandResult checked = RunTrainyard("trace validate " + log);
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_NE(checked.out.find("2 jobs, format openb, 2 rows skipped\n  time 0 is 100 s\n"),
            std::string::npos)
      << checked.out;
  EXPECT_NE(checked.err.find("skipped 2 rows of 4:\n"), std::string::npos) << checked.err;
  EXPECT_NE(checked.err.find("jobs on CPUs alone are left out (2 rows, the next in line 4)\n"),
            std::string::npos)
      << checked.err;
  EXPECT_NE(checked.err.find("a fraction of a GPU, which is rounded up"), std::string::npos);
  const CommandResult stats = RunTrainyard("trace stats " + log);
  EXPECT_NE(stats.out.find("recorded wait   p50 8 s, p90 10 s\n"), std::string::npos) << stats.out;
  EXPECT_NE(stats.out.find("recorded ends   Running:1 Succeeded:1\n"), std::string::npos);
  const CommandResult run = RunTrainyard("simulate " + log + " --cluster 1x2 --policy fifo");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("skipped 2 rows of 4:\n"), std::string::npos) << run.err;
}

TEST(BadInputTest, AMissingFileIsNamed) {
  const CommandResult result = RunTrainyard("simulate nowhere.csv --cluster 1x4");
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_NE(result.err.find("nowhere.csv"), std::string::npos);
}

TEST(BadInputTest, AnUnwritableOutputIsAFailure) {
  const CommandResult result =
      RunTrainyard("simulate " + Trace("a,0,1,5\n") + " --cluster 1x4 --out " + Trace("a,0,1,5\n"));
  EXPECT_EQ(result.status, kFailed);
}

TEST(ReplayLiveTest, WhatCannotBeReplayedIsRefused) {
  const std::string replay = "replay-live " + kExample + " --policy fifo --fast-forward";
  const CommandResult stopped = RunTrainyard(replay + " --until 60");
  EXPECT_EQ(stopped.status, kWrongUsage);
  EXPECT_EQ(stopped.err, "--until and --track stop simulations; expected neither\n");
  const CommandResult command = RunTrainyard(replay + " -- true");
  EXPECT_EQ(command.status, kWrongUsage);
  EXPECT_EQ(command.err,
            "the workers of a command leave logs and checkpoints; expected --state FOLDER\n");
  const CommandResult ignored = RunTrainyard("replay-live " + kExample + " --policy fifo");
  EXPECT_EQ(ignored.status, kWrongUsage);
  EXPECT_EQ(ignored.err,
            "--policy has no effect on a running cluster, which has its own; expected it with "
            "--fast-forward only\n");
  const CommandResult scaled = RunTrainyard(replay + " --time-scale 10");
  EXPECT_EQ(scaled.status, kWrongUsage);
  EXPECT_NE(scaled.err.find("--time-scale"), std::string::npos) << scaled.err;
}

TEST(ProgramTest, AHiddenCommandIsNotOffered) {
  const CommandResult result = RunTrainyard("supervize x");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_EQ(result.err.find("supervise"), std::string::npos) << result.err;
}

TEST(TraceTest, StatisticsCountWhatIsThere) {
  const CommandResult result =
      RunTrainyard("trace stats " + Trace("a,0,1,3600\nb,3600,2,3600\n") + " --cluster 1x3 --json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("\"jobs\": 2"), std::string::npos);
  EXPECT_NE(result.out.find("\"gpu_hours\": 3.0"), std::string::npos);
  EXPECT_NE(result.out.find("\"load\": 1.0"), std::string::npos);
}

TEST(TraceTest, TheExampleIsWhatTheGeneratorMakes) {
  EXPECT_EQ(RunTrainyard("trace generate --jobs 400 --seed 1 --cluster-gpus 128 --load 1.2 "
                         "--largest-job 16 --longest-hours 12 --deadline-share 0.7")
                .out,
            ReadText(TRAINYARD_SOURCE_DIR "/data/example_trace.csv"));
  EXPECT_EQ(RunTrainyard("trace generate-profiles").out,
            ReadText(TRAINYARD_SOURCE_DIR "/data/example_profiles.csv"));
}

TEST(TraceTest, GeneratorOptionsThatContradictAreRefused) {
  for (const std::string options :
       {"--jobs 3",
        "--figure 10 --jobs 3 --profiles data/example_profiles.csv",
        "--jobs 3 --cluster-gpus 4 --load nan",
        "--style elasticflow --load 1 --jobs 3",
        "--style synergy --jobs 3 --jobs-per-hour 1",
        "--style mix --one-gpu --jobs 3 --cluster-gpus 4",
        "--style blox --jobs-per-hour 2",
        "--style blox --jobs-per-hour 2 --jobs 3 --hours 1",
        "--style mix --jobs 3 --cluster-gpus 4 --bursts",
        "--style gavel --jobs 3",
        "--style gavel --jobs 3 --profiles x.csv --even-hours 1:0:3",
        "--style gavel --jobs 3 --profiles x.csv --even-hours 1:2:3 --priorities",
        "--style synergy --jobs 3 --jobs-per-hour 1 --profiles x.csv --multi-gpu",
        "--style mix --jobs 3 --days 2",
        "--style poisson --jobs 3",
        "--style poisson --jobs 3 --load 0.5",
        "--style poisson --jobs 3 --days 2 --jobs-per-hour 1",
        "--style philly-like",
        "--style philly-like --jobs 3 --figure 10",
        "--style philly-like --jobs 3 --gpu-mix 1",
        "--style philly-like --jobs 3 --models bert=1",
        "--style philly-like --jobs 3 --split 1/2/3",
        "--style philly-like --jobs 3 --deadline-share 0.6 --best-effort-share 0.6",
        "--style philly-like --jobs 3 --failure-share 1.5",
        "--style philly-like --jobs 3 --deadline-factor 2:1"}) {
    EXPECT_EQ(RunTrainyard("trace generate " + options).status, kWrongUsage) << options;
  }
}

TEST(TraceTest, AStyleTakesItsOptionsFromTheCommandLine) {
  const std::string out = ScratchPath("styled.csv");
  const CommandResult made = RunTrainyard(
      "trace generate --style helios-like --jobs 300 --seed 4 --cluster-gpus 64 --load 0.5 "
      "--gpu-mix 2=1,4=3 --models convnet-small=1 --users 2 --queues 1 --deadline-share 1 "
      "--deadline-factor 2 --median-duration 1000 --duration-spread 0 --out " +
      out);
  ASSERT_EQ(made.status, 0) << made.err;
  const CommandResult stats = RunTrainyard("trace stats " + out + " --cluster 8x8");
  EXPECT_EQ(stats.status, 0) << stats.err;
  for (const std::string expected :
       {"300 (300 with deadline, 0 best effort, 0 rows left out)", "p10 16m40s, p50 16m40s",
        "p10 2.00, p50 2.00, p90 2.00", "offered load    0.5", "user (2 of 2)", "queue (1 of 1)",
        "model (1 of 1)"}) {
    EXPECT_NE(stats.out.find(expected), std::string::npos) << expected << "\n" << stats.out;
  }
}

TEST(CommandLineTest, ASlipInAnOptionIsNamed) {
  const CommandResult slip = RunTrainyard("simulate t.csv --cluster 1x1 --polcy fifo");
  EXPECT_EQ(slip.status, kWrongUsage);
  EXPECT_EQ(slip.err,
            "trainyard: unknown option '--polcy'; did you mean '--policy'?; `trainyard simulate "
            "--help` lists all\n");
  const CommandResult nested = RunTrainyard("trace generate --job=3");
  EXPECT_EQ(nested.status, kWrongUsage);
  EXPECT_EQ(nested.err,
            "trainyard: unknown option '--job'; did you mean '--jobs'?; `trainyard trace generate "
            "--help` lists all\n");
  EXPECT_EQ(RunTrainyard("simulate --cluster 1x1 --no-such-thing").err,
            "trainyard: unknown option '--no-such-thing'; `trainyard simulate --help` lists all\n");
}

TEST(CommandLineTest, SlipsInPoliciesAreNamedAndListsExplained) {
  const std::string run = "simulate " + Trace("a,0,1,5\n") + " --cluster 1x1 --policy ";
  EXPECT_TRUE(RunTrainyard(run + "strf")
                  .err.starts_with("unknown policy 'strf'; did you mean 'srtf'?; known: "));
  const CommandResult list = RunTrainyard(run + "fifo,srtf");
  EXPECT_EQ(list.status, kWrongUsage);
  EXPECT_TRUE(list.err.starts_with("'fifo,srtf' names more than one; ")) << list.err;
}

TEST(SweepTest, DivisionsOfLoaderWorkersAreCells) {
  const std::string scenario = WriteScratch("scenario.json",
                                            R"({"cpu_cores": 12, "apps": [
        {"arch": "cnn", "depth": 8, "batch": 256, "devices": {"n0": [0, 1]}},
        {"arch": "cnn", "depth": 16, "batch": 256, "devices": {"n0": [2]}}]})");
  const std::string experiment =
      WriteScratch("division.toml",
                   "title = \"t\"\n[[trace]]\nname = \"s\"\npath = \"" + scenario +
                       "\"\nformat = \"loader-scenario\"\nprofiles = \"" + TRAINYARD_SOURCE_DIR +
                       "/data/example_loader/models.csv\"\n[[cluster]]\nname = \"c\"\nspec = "
                       "\"1x3\"\n[[run]]\nlabel = \"even\"\npolicy = "
                       "\"even\"\n[[run]]\nlabel = \"optimum\"\npolicy = \"optimum\"\n"
                       "[[run]]\nlabel = \"other\"\npolicy = \"evne\"\n");
  const std::string out = ScratchPath("division");
  const CommandResult sweep = RunTrainyard("sweep " + experiment + " --out " + out);
  EXPECT_EQ(sweep.status, kFailed) << sweep.err;
  EXPECT_NE(sweep.err.find("unknown rule 'evne'; did you mean 'even'?"), std::string::npos)
      << sweep.err;
  EXPECT_NE(sweep.out.find("throughput"), std::string::npos) << sweep.out;
  const std::string csv = ReadText(out + "/results.csv");
  EXPECT_NE(csv.find(",throughput\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("even,ok,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("optimum,ok,"), std::string::npos) << csv;
}

TEST(CommandLineTest, PoliciesSayWhatTheirJobsDoNotState) {
  const std::string trace = Trace("a,0,1,5\nb,0,1,5\n") + " --cluster 1x1 ";
  EXPECT_EQ(
      RunTrainyard("simulate " + trace + "--policy edf")
          .err.find(
              "warning: policy 'edf' goes by deadlines, but no job states one: there is none to "
              "keep\n"),
      0U);
  const CommandResult both = RunTrainyard(
      "compare " + trace + "--policy fifo --policy muri-s --out " + ScratchPath("unstated"));
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_EQ(both.err.find("warning: policy 'muri-s' lets jobs share GPUs by the times of their "
                          "stages, but no job states them: jobs without stage times run alone\n"),
            0U)
      << both.err;
  EXPECT_EQ(RunTrainyard("simulate " + trace + "--policy fifo").err.find("warning"),
            std::string::npos);
}

TEST(TraceTest, AGeneratedFileIsNotReplacedUnasked) {
  const std::string out = WriteScratch("mine.csv", "mine");
  for (const std::string command : {"generate --jobs 3 --cluster-gpus 4", "generate-profiles",
                                    "generate-failures --cluster 2x2 --days 1"}) {
    const CommandResult refused = RunTrainyard("trace " + command + " --out " + out);
    EXPECT_EQ(refused.status, kWrongUsage) << command;
    EXPECT_EQ(refused.err, out + ": is there already; expected --force, or another name\n");
    EXPECT_EQ(ReadText(out), "mine");
  }
  EXPECT_EQ(RunTrainyard("trace generate --jobs 1e1 --cluster-gpus 4 --force --out " + out).status,
            0);
  EXPECT_NE(RunTrainyard("trace validate " + out).out.find("10 jobs"), std::string::npos);
}

TEST(TraceTest, TimesMayHaveUnits) {
  const std::string trace = Trace("a,0,1,3600\nb,7200,1,3600\n");
  const CommandResult seconds =
      RunTrainyard("simulate " + trace + " --cluster 1x1 --until 5400 --json");
  const CommandResult hours =
      RunTrainyard("simulate " + trace + " --cluster 1x1 --until 1h30m --json");
  EXPECT_EQ(hours.status, seconds.status) << hours.err;
  EXPECT_NE(hours.out.find("\"completed\": 1"), std::string::npos) << hours.out;
  EXPECT_EQ(RunTrainyard("trace generate --style poisson --days 12h --jobs-per-hour 10").out,
            RunTrainyard("trace generate --style poisson --days 0.5 --jobs-per-hour 10").out);
  const CommandResult wrong = RunTrainyard("simulate " + trace + " --cluster 1x1 --until soon");
  EXPECT_EQ(wrong.status, kWrongUsage);
  EXPECT_NE(wrong.err.find("'soon' is no time; expected a number, or 90s, 15m, 2h"),
            std::string::npos)
      << wrong.err;
}

TEST(TraceTest, HoursAreThoseOfTheLogsClock) {
  const std::string log = WriteScratch("c.swf",
                                       "; UnixStartTime: 1009864800\n; TimeZone: -21600\n"
                                       "1 7200 0 60 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n");
  const CommandResult stats = RunTrainyard("trace stats " + log);
  EXPECT_EQ(stats.status, 0) << stats.err;
  EXPECT_NE(stats.out.find("time 0          2002-01-01 00:00:00\n"), std::string::npos)
      << stats.out;
  EXPECT_NE(stats.out.find("02 h 100.00"), std::string::npos) << stats.out;
  EXPECT_NE(stats.out.find("Tue 100.00"), std::string::npos) << stats.out;
}

TEST(TraceTest, FailuresOfNodesMakeACluster) {
  const std::string out = ScratchPath("failing.toml");
  const std::string options = " --days 60 --mtbf-hours 100 --seed 2 --out " + out;
  ASSERT_EQ(RunTrainyard("trace generate-failures --cluster 4x2" + options).status, 0);
  EXPECT_EQ(RunTrainyard("trace validate data/example_trace.csv --cluster " + out).status,
            kBadInput);  // 8 GPUs, and it asks for 16
  EXPECT_EQ(RunTrainyard("simulate " + Trace("a,0,2,9000000\n") + " --cluster " + out).status, 0);
  const CommandResult twice =
      RunTrainyard("trace generate-failures --force --cluster " + out + options);
  EXPECT_EQ(twice.status, kWrongUsage);
  EXPECT_EQ(twice.err, out + " has failures already; expected a cluster without\n");
}

TEST(TraceTest, StatisticsAreWrittenAsTables) {
  const std::string folder = ScratchPath("statistics");
  const CommandResult result = RunTrainyard("trace stats " + Trace("a,0,1,3600\nb,0,-1,5\n") +
                                            " --skip-bad-rows --csv " + folder);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(ReadText(folder + "/left_out.csv"),
            "reason,rows\ncolumn 'gpus': expected an integer from 0 to 6400000,1\n");
  EXPECT_EQ(ReadText(folder + "/gpus.csv"),
            "gpus,jobs,job_share,gpu_hours,gpu_hour_share,duration_p50,duration_mean\n"
            "1,1,1,1,1,3600,3600\n");
}

TEST(UsageTest, NumbersBelowZeroAreRefusedWhereNoneCanBe) {
  const CommandResult until = RunTrainyard("simulate " + kExample + " --until -5");
  EXPECT_EQ(until.status, kWrongUsage);
  EXPECT_NE(until.err.find("--until: -5: expected a number of at least 0"), std::string::npos)
      << until.err;
  for (const std::string& arguments :
       {"simulate " + kExample + " --seed -1",
        "compare " + kExample + " --policy las --policy fifo --explain-jobs -1 --out " +
            ScratchPath("never"),
        std::string("trace generate --jobs 5 --cluster-gpus 8 --seed -1"),
        std::string("trace generate-failures --cluster 4x2 --days 3 --seed -1")}) {
    const CommandResult result = RunTrainyard(arguments);
    EXPECT_EQ(result.status, kWrongUsage) << arguments;
    EXPECT_NE(result.err.find(": -1: expected a whole number of at least 0"), std::string::npos)
        << result.err;
  }
  const CommandResult jobs = RunTrainyard("trace generate --jobs 100k --cluster-gpus 8");
  EXPECT_EQ(jobs.status, kWrongUsage);
  EXPECT_NE(jobs.err.find("--jobs: '100k' is no whole number; expected digits, such as 100000 or "
                          "1e5"),
            std::string::npos)
      << jobs.err;
}

TEST(UsageTest, ACommandOfACommandIsNamedInFull) {
  const CommandResult result = RunTrainyard("convert a.csv b.swf");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_EQ(result.err, "trainyard: unknown command 'convert'; did you mean 'trace convert'?\n");
}

TEST(UsageTest, OneEntryOfACatalogueIsShown) {
  const CommandResult one = RunTrainyard("policies srtf");
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_TRUE(one.out.starts_with("srtf "));
  EXPECT_NE(RunTrainyard("policies").out.find("\n" + one.out), std::string::npos);
  EXPECT_EQ(RunTrainyard("policies srtf --json").out.front(), '{');
  const CommandResult slip = RunTrainyard("policies srtff");
  EXPECT_EQ(slip.status, kWrongUsage);
  EXPECT_NE(slip.err.find("unknown policy 'srtff'; did you mean 'srtf'?"), std::string::npos)
      << slip.err;
  EXPECT_EQ(RunTrainyard("placements nowhere").status, kWrongUsage);
}

// A result that is lost must not look like one that arrived.
TEST(OutputTest, AFullStandardOutputIsAFailure) {
  const std::string out = ScratchPath("full");
  const std::string experiment =
      WriteScratch("full.toml",
                   "[[trace]]\nname = \"a\"\npath = \"data/example_trace.csv\"\n[[cluster]]\n"
                   "name = \"c\"\nspec = \"16x8\"\n[[run]]\nlabel = \"r\"\npolicy = \"las\"\n");
  ASSERT_EQ(RunTrainyard("simulate " + kExample + " --out " + out).status, 0);
  for (const std::string& arguments :
       {"simulate " + kExample, "compare " + kExample + " --policy fifo --out " + out + "/compared",
        std::string("trace generate --jobs 10 --cluster-gpus 8"),
        std::string("trace generate --jobs 10000 --cluster-gpus 8"),
        std::string("trace stats data/example_trace.csv"), std::string("--help"),
        std::string("--version"), std::string("policies"), "sweep --list " + experiment,
        "report --json " + out + " --out " + out + "/page.html"}) {
    const CommandResult result = RunTrainyard(arguments, "/dev/full");
    EXPECT_EQ(result.status, kFailed) << arguments;
    EXPECT_TRUE(result.err.ends_with("standard output: writing failed: No space left on device\n"))
        << arguments << ": " << result.err;
  }
  EXPECT_EQ(RunTrainyard("simulate nothing.csv --cluster 1x1", "/dev/full").status, kBadInput);
}

TEST(OutputTest, AReaderThatHasSeenEnoughHearsNoComplaint) {
  const std::string line = ScratchPath("line");
  const std::string complaint = ScratchPath("complaint");
  (void)RunTrainyard("trace generate --jobs 10000 --cluster-gpus 8 2>" + complaint +
                     " | head -1 >" + line + "; true");
  EXPECT_TRUE(ReadText(line).starts_with("job_id,"));
  EXPECT_EQ(ReadText(complaint), "");
}

// A folder with a copy of the example's trace, under the name of something that is written.
std::string CopyOfTrace(const std::string& name) {
  const std::string folder = ScratchPath("overwritten");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories((std::filesystem::path(folder) / name).parent_path());
  std::filesystem::copy(TRAINYARD_SOURCE_DIR "/data/example_trace.csv",
                        std::filesystem::path(folder) / name);
  return folder;
}

// Files that a command wrote there, relative to the folder.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.push_back(std::filesystem::relative(entry.path(), folder).string());
    }
  }
  return files;
}

TEST(OutputTest, NoCommandWritesOverItsTrace) {
  struct Case {
    const char* command;
    const char* outputs;  // {}: the folder
    std::size_t files;    // at least so many
  };
  const auto with = [](std::string text, const std::string& folder) {
    for (std::size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}")) {
      text.replace(at, 2, folder);
    }
    return text;
  };
  const std::string untouched = ReadText(TRAINYARD_SOURCE_DIR "/data/example_trace.csv");
  for (const Case& one :
       {Case{"simulate", " --cluster 16x8 --out {} --html {}/p.html", 5},
        Case{"simulate", " --cluster 16x8 --journal {}/j", 1},
        Case{"compare", " --cluster 16x8 --policy fifo --out {}", 5},
        Case{"replay-live --fast-forward", " --cluster 16x8 --policy fifo --out {}", 3},
        Case{"trace stats", " --csv {}", 8}, Case{"trace stats", " --plots {}", 2}}) {
    const std::string trial = CopyOfTrace("trial.csv");
    // Without gnuplot, --plots stops after the first data.
    const std::string command = one.command;
    (void)RunTrainyard(command + " " + trial + "/trial.csv" + with(one.outputs, trial));
    std::vector<std::string> files = FilesIn(trial);
    std::erase(files, "trial.csv");
    EXPECT_GE(files.size(), one.files) << command << one.outputs;
    for (const std::string& file : files) {
      const std::string folder = CopyOfTrace(file);
      const std::string trace = folder + "/" + file;
      const CommandResult result = RunTrainyard(command + " " + trace + with(one.outputs, folder));
      EXPECT_EQ(result.status, kWrongUsage) << command << " " << file << ": " << result.err;
      EXPECT_NE(result.err.find("would write over this file, which is an input (TRACE "),
                std::string::npos)
          << result.err;
      EXPECT_EQ(FilesIn(folder), std::vector{file});
      EXPECT_EQ(ReadText(trace), untouched);
    }
  }
}

TEST(OutputTest, OutputsThatWouldBeTheSameFileAreRefused) {
  const std::string both = ScratchPath("both");
  const CommandResult simulated =
      RunTrainyard("simulate " + kExample + " --journal " + both + " --html " + both);
  EXPECT_EQ(simulated.status, kWrongUsage);
  EXPECT_EQ(simulated.err, both +
                               ": --journal and --html would both write this file; expected "
                               "different files\n");
  EXPECT_FALSE(std::filesystem::exists(both));
  // Two policies whose folders have the same name.
  const CommandResult compared =
      RunTrainyard("compare " + kExample + " --policy las:a=1 --policy las-a=1 --out " + both);
  EXPECT_EQ(compared.status, kWrongUsage);
  EXPECT_NE(compared.err.find("--out would write this file twice"), std::string::npos)
      << compared.err;
}

TEST(OutputTest, ASweepDoesNotWriteOverItsTrace) {
  const std::string folder = CopyOfTrace("results.csv");
  const std::string experiment = WriteScratch(
      "over.toml", "[[trace]]\nname = \"a\"\npath = \"" + folder +
                       "/results.csv\"\n[[cluster]]\nname = \"c\"\nspec = \"16x8\"\n[[run]]\n"
                       "label = \"r\"\npolicy = \"las\"\n");
  const CommandResult result = RunTrainyard("sweep " + experiment + " --out " + folder);
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("/results.csv: --out would write over this file"), std::string::npos)
      << result.err;
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{"results.csv"});
}

TEST(LoaderTest, FitsTheModelAndWritesItsCoefficients) {
  std::string rows = "model,batch_size,num_worker,num_device,ave_iteration,params,flops\n";
  for (int flops = 1; flops <= 6; ++flops) {  // 0.1 s and 0.001 s for each image and flop
    rows += "m" + std::to_string(flops) + ",10,8,1,0." + std::to_string(10 + flops) + ",0," +
            std::to_string(flops) + "\n";
  }
  const std::string out = ScratchPath("loader_model.csv");
  const CommandResult result =
      RunTrainyard("loader fit " + WriteScratch("runs.csv", rows) + " --json --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("\"cross_validated\""), std::string::npos);
  const std::string written = ReadText(out);
  EXPECT_EQ(written.find("coefficient,value\ngpu_base,0."), 0U) << written;
  EXPECT_NE(written.find("gpu_params,0\n"), std::string::npos) << written;
  EXPECT_NE(written.find("loader_per_worker,0.0078"), std::string::npos) << written;  // as shipped
}

TEST(LoaderTest, UnfitRunsAreRefused) {
  const std::string runs = WriteScratch("runs.csv", "model,batch_size\nm,1\n");
  EXPECT_EQ(RunTrainyard("loader fit " + runs).status, kBadInput);
  EXPECT_EQ(RunTrainyard("loader fit").status, kWrongUsage);
}

TEST(CatalogTest, ListsEverythingAsTextAndJson) {
  for (const std::string command : {"policies", "placements", "admissions", "presets"}) {
    EXPECT_EQ(RunTrainyard(command).status, 0);
    EXPECT_EQ(RunTrainyard(command + " --json").out.front(), '[') << command;
  }
  EXPECT_NE(RunTrainyard("presets tiresias").out.find("[policies.dlas-gpu]"), std::string::npos);
  EXPECT_EQ(RunTrainyard("presets nothing").status, kWrongUsage);
}

// Release and debug builds, and a second run, give the same digest.
// In each build: debug, optimised, with sanitizers, by either compiler.
TEST(DeterminismTest, TheDigestOfTheExampleIsFixed) {
  const std::string arguments = "simulate " + kExample + " --policy tiresias --json";
  for (int run = 0; run < 2; ++run) {
    EXPECT_NE(RunTrainyard(arguments).out.find(
                  "\"journal_digest\": "
                  "\"cd72cb381bb152f660fde88070d1854c84363c41d61d8e78ce0194f178f32c43\""),
              std::string::npos);
  }
}

}  // namespace
}  // namespace trainyard
