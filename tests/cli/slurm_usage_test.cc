// SPDX-License-Identifier: Apache-2.0
// What users of Slurm type at first, and what the program says of it. No controller is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int kWrongUsage = 2;
constexpr int kBadInput = 3;

// What is said of wrong usage.
std::string Said(const std::string& arguments) {
  const CommandResult result = RunTrainyard(arguments);
  EXPECT_EQ(result.status, kWrongUsage) << arguments;
  EXPECT_EQ(result.out, "") << arguments;
  return result.err;
}

TEST(SlurmUsageTest, CommandsOfSlurmNameTheirTwins) {
  EXPECT_EQ(Said("squeue"),
            "trainyard: 'squeue' is a command of Slurm; here it is 'trainyard status' "
            "(docs/from-slurm.md has a table)\n");
  EXPECT_THAT(Said("sbatch --gpus 1 a.sh"), HasSubstr("'trainyard submit'"));
  EXPECT_THAT(Said("scancel 12"), HasSubstr("'trainyard cancel'"));
  EXPECT_THAT(Said("sinfo"), HasSubstr("'trainyard nodes'"));
  EXPECT_THAT(Said("sacct"), HasSubstr("'trainyard status --all'"));
  EXPECT_THAT(Said("srun hostname"), HasSubstr("'trainyard run'"));
  EXPECT_THAT(Said("scontrol show job 3"), HasSubstr("'trainyard status JOB'"));
  EXPECT_THAT(Said("scontrol hold 3"), HasSubstr("'trainyard hold JOB'"));
}

TEST(SlurmUsageTest, CommandsOfOtherProgramsNameTheirTwins) {
  for (const auto& [word, here] :
       {std::pair{"kill", "cancel"}, std::pair{"ps", "status"}, std::pair{"jobs", "status"},
        std::pair{"queue", "status"}, std::pair{"version", "--version"}}) {
    EXPECT_EQ(Said(word), "trainyard: unknown command '" + std::string(word) +
                              "'; did you mean 'trainyard " + here + "'?\n");
  }
}

TEST(SlurmUsageTest, OptionsWithAnEmptyValueAreWrongUsage) {
  const std::string run = " data/example_trace.csv --cluster 1x8 ";
  for (const char* const option :
       {"--policy", "--placement", "--admission", "--grouping", "--tuning", "--preset"}) {
    EXPECT_THAT(Said("simulate" + run + option + " ''"),
                StartsWith(std::string(option) + ": the value is empty; expected one"));
  }
  EXPECT_THAT(Said("compare" + run + "--policy las --policy ''"),
              StartsWith("--policy: the value"));
  EXPECT_THAT(Said("up --policy ''"), StartsWith("--policy: the value is empty"));
  EXPECT_THAT(Said("submit --gpus 1 --token '' -- true"),
              StartsWith("--token: the value is empty"));
}

TEST(SlurmUsageTest, OptionsOfSbatchAreNamedWithWhatTheyAreHere) {
  const std::string script = WriteScratch("a.sh", "#!/bin/sh\n#SBATCH --gpus=1\n");
  EXPECT_EQ(Said("submit --gpus 1 --partition long " + script),
            "trainyard: unknown option '--partition': it is --queue here (docs/from-slurm.md); "
            "`trainyard submit --help` lists all\n");
  EXPECT_THAT(Said("submit --gpus 1 --mem 4G " + script),
              StartsWith("trainyard: unknown option '--mem': it is --memory 64G/node here"));
  EXPECT_THAT(Said("submit --gpus 1 --mem=4G " + script), HasSubstr("unknown option '--mem': it"));
  EXPECT_THAT(Said("submit --comment x " + script),
              HasSubstr("'--comment': only #SBATCH lines and 'sbatch' take it; it is shown by"));
  EXPECT_THAT(Said("submit --parsable " + script), HasSubstr("'--parsable': it is --json here"));
  EXPECT_THAT(Said("submit --gpus 1 --wrap 'python x.py'"), HasSubstr("-- sh -c 'COMMAND'"));
  EXPECT_THAT(Said("submit -J bert --gpus 1 " + script), HasSubstr("'-J': it is --name here"));
  EXPECT_THAT(Said("submit -p long --gpus 1 " + script), HasSubstr("'-p': it is --queue here"));
  EXPECT_THAT(Said("submit -N2 --gpus 1 " + script), HasSubstr("'-N': it is --nodes here"));
  EXPECT_THAT(Said("submit " + script + " --partition long"), HasSubstr("it is --queue here"));
  EXPECT_THAT(Said("run -p long --gpus 1 nvidia-smi"), HasSubstr("'-p': it is --queue here"));
  EXPECT_THAT(Said("run --gpus 1 -n 2 -- nvidia-smi"), HasSubstr("'-n': it is --tasks here"));
}

TEST(SlurmUsageTest, ACommandWithoutItsMarkIsStillExplained) {
  EXPECT_EQ(Said("submit --gpus 1 python train.py --lr 1"),
            "trainyard submit: 'python' is no option; expected -- before the job's command: "
            "trainyard submit [OPTIONS] -- python train.py --lr 1\n");
  EXPECT_THAT(Said("run --gpus 1 python -c 'x'"),
              HasSubstr("expected -- before the job's command"));
  EXPECT_THAT(Said("submit --gpu 1 -- true"), HasSubstr("did you mean '--gpus'?"));
}

TEST(SlurmUsageTest, AnOptionBeforeItsCommandIsNotTakenForASlip) {
  EXPECT_EQ(Said("--controller head:7077 status"),
            "trainyard: option '--controller' stands before its command; expected it behind: "
            "trainyard status --controller ...\n");
  EXPECT_THAT(Said("status -u ann"), HasSubstr("unknown option '-u': it is --user here"));
}

TEST(SlurmUsageTest, ListsOfNamesThatAreNoneAreExplained) {
  EXPECT_THAT(Said("status 1,,2"), HasSubstr("'1,,2' has an empty name; expected names"));
  EXPECT_THAT(Said("drain 'n[0-'"), HasSubstr("has a bracket that nothing closes"));
  EXPECT_THAT(Said("cancel '5_[9-3]'"), HasSubstr("has '9-3' in brackets, which is no range"));
}

TEST(SlurmUsageTest, TimesOfOptionsMayBeWrittenAsThereAndSayWhyTheyAreNone) {
  EXPECT_THAT(Said("wait 1 --timeout 1:99:00"),
              HasSubstr("'1:99:00' is no time: 99 minutes; expected 0 to 59"));
  EXPECT_THAT(RunTrainyard("wait 1 --timeout 0:30 --controller 127.0.0.1:1").err,
              Not(HasSubstr("no time")));
}

TEST(SlurmUsageTest, ScriptsThatCannotBeReadAreRefusedWithoutAController) {
  const std::string nobody = " --controller 127.0.0.1:1";
  const auto refused = [&](const std::string& text) {
    return RunTrainyard("submit " + WriteScratch("s.sh", text) + nobody);
  };
  const CommandResult dos = refused("#!/bin/bash\r\n#SBATCH --gpus=1\r\necho\r\n");
  EXPECT_EQ(dos.status, kBadInput);
  EXPECT_THAT(dos.err, AllOf(HasSubstr("s.sh:1: "), HasSubstr("dos2unix")));
  EXPECT_EQ(refused("").status, kWrongUsage);
  EXPECT_EQ(refused(std::string("\x7f"
                                "ELF\0\0\1",
                                7))
                .status,
            kWrongUsage);
  for (const char* const input :
       {"submit /dev/stdin </dev/null", "submit --gpus 1 /dev/null", "submit --gpus 1 /tmp",
        "submit --gpus 1 /dev/fd/99", "submit --gpus 1 ''", "submit --gpus 1 -",
        "run --gpus 1 /dev/stdin"}) {
    const CommandResult result = RunTrainyard(input + nobody);
    EXPECT_EQ(result.status, kWrongUsage) << input << ": " << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("basic_string"))) << input;
  }
}

TEST(SlurmUsageTest, AHostThatThereIsNotDoesNotAskForALogin) {
  const CommandResult result = RunTrainyard("status --controller no-such-host.invalid:7077");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("the host of the controller at no-such-host.invalid:7077 is not known"),
            Not(HasSubstr("login"))));
}

TEST(SlurmUsageTest, HelpShowsOptionsThatThereAre) {
  const CommandResult help = RunTrainyard("agent --help");
  EXPECT_THAT(help.out, AllOf(HasSubstr("--node n0"), Not(HasSubstr("--name"))));
}

}  // namespace
}  // namespace trainyard
