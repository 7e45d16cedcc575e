// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/scratch_folder.h"

namespace trainyard::requests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BatchScriptTest : public testing::Test {
 protected:
  Status Read(const std::string& text, const std::vector<std::string>& arguments = {}) {
    path_ = folder_.Write("train.sh", text);
    job_ = {};
    warnings_.clear();
    Result<BatchScript> script = BatchScript::Read(path_, job_);
    if (!script.ok()) {
      return script.error();
    }
    if (job_.launch().working_directory().empty()) {
      job_.mutable_launch()->set_working_directory(std::filesystem::path(path_).parent_path());
    }
    script.value().SetCommand(arguments, job_);
    warnings_ = script.value().warnings();
    return {};
  }
  [[nodiscard]] std::string Variable(std::string_view name) const {
    for (const v1::EnvironmentVariable& variable : job_.launch().environment()) {
      if (variable.name() == name) {
        return variable.value();
      }
    }
    return "(not set)";
  }
  [[nodiscard]] std::string Kept(std::string_view name) const {
    for (const v1::EnvironmentVariable& kept : job_.launch().batch().kept()) {
      if (kept.name() == name) {
        return kept.value();
      }
    }
    return "(not kept)";
  }
  // With the lines below "#!/bin/sh".
  std::string Mistake(const std::string& lines) {
    const Status status = Read("#!/bin/sh\n" + lines);
    return status.ok() ? "" : status.error().message;
  }

  [[nodiscard]] std::string Absolute() const {
    return std::filesystem::path(path_).lexically_normal().string();
  }

  ScratchFolder folder_;
  std::string path_;
  v1::JobRequest job_;
  std::vector<std::string> warnings_;
};

TEST_F(BatchScriptTest, LinesAtTheHeadAreOptions) {
  ASSERT_TRUE(Read("#!/bin/bash -l\n"
                   "# A remark.\n"
                   "#SBATCH --job-name=\"bert large\" -p long -A vision  # why not\n"
                   "#SBATCH -N 2 --gres=gpu:a100:4\n"
                   "#SBATCH --time 1-12:00:00\n"
                   "\n"
                   "##SBATCH --qos=nobody\n"
                   "#SBATCH --dependency=afterok:3 --array=0-9%2 -D /data\n"
                   "#SBATCH --mail-type=END,FAIL --export=NONE,SEED=7\n"
                   "python3 train.py\n"
                   "#SBATCH --nonsense\n",
                   {"--lr", "0.1"})
                  .ok());
  EXPECT_EQ(job_.name(), "bert large");
  EXPECT_EQ(job_.queue(), "long");
  EXPECT_EQ(job_.account(), "vision");
  EXPECT_EQ(job_.gpus(), 8);
  EXPECT_THAT(job_.gpu_types(), ElementsAre("a100"));
  EXPECT_EQ(job_.time_s(), 36 * 3600);
  EXPECT_EQ(job_.dependency(), "afterok:3");
  EXPECT_EQ(job_.array(), "0-9%2");
  EXPECT_EQ(job_.launch().working_directory(), "/data");
  EXPECT_THAT(job_.launch().notify(), ElementsAre("end", "fail"));
  EXPECT_EQ(Variable("SEED"), "7");
  EXPECT_EQ(job_.launch().workers(), v1::LaunchSpec::ONCE);
  EXPECT_THAT(job_.launch().command(),
              ElementsAre("/bin/sh", "-c", HasSubstr("out=\"slurm-"), "sh", "/bin/bash", "-l",
                          "{the script}", "--lr", "0.1"));
  EXPECT_THAT(job_.launch().batch().script(), HasSubstr("python3 train.py\n"));
}

TEST_F(BatchScriptTest, AQuoteThatNothingClosesSwallowsNoOptions) {
  EXPECT_THAT(Mistake("#\n#SBATCH --job-name=\"open --time=1\n"),
              HasSubstr("train.sh:3: nothing closes the \" in [--job-name=\"open --time=1]; "
                        "expected another one behind it"));
  EXPECT_THAT(Mistake("#SBATCH -J it's\n"), HasSubstr("train.sh:2: nothing closes the ' in"));
  EXPECT_EQ(Mistake("#SBATCH -J 'a \"b' -G1 # don't\n"), "");
  EXPECT_EQ(job_.name(), "a \"b");
  EXPECT_EQ(Mistake("#SBATCH -G1 -J a\\\"b\\\\c#d's\n"), "") << "a backslash keeps the quote";
  EXPECT_EQ(job_.name(), "a\"b\\c");
  EXPECT_EQ(Mistake("#SBATCH -J a\\ -G2\n"), "");
  EXPECT_EQ(job_.name(), "a");
  EXPECT_EQ(job_.gpus(), 2);
}

// As sbatch 22.05 reads them.
TEST_F(BatchScriptTest, ALineNeedsNoBlankBehindItsMark) {
  EXPECT_EQ(Mistake("#SBATCH--gpus=9\n#SBATCH-J a\n#SBATCH\n"), "");
  EXPECT_EQ(job_.gpus(), 9);
  EXPECT_EQ(job_.name(), "a");
  EXPECT_THAT(Mistake("#SBATCHX --gpus=9\n"), HasSubstr("train.sh:2: 'X' is no option of sbatch"));
  EXPECT_EQ(Mistake("# SBATCH --gpus=9\n#sbatch --gpus=9\n##SBATCH --gpus=9\n"), "");
  EXPECT_FALSE(job_.has_gpus());
}

TEST_F(BatchScriptTest, APlainTimeIsMinutes) {
  EXPECT_EQ(Mistake("#SBATCH -t 90 -G 1\n"), "");
  EXPECT_EQ(job_.time_s(), 90 * 60);
  EXPECT_EQ(job_.name(), "train.sh");
}

TEST_F(BatchScriptTest, ItRunsOnceAndKnowsItsTasks) {
  EXPECT_EQ(Mistake("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4 --gpus-per-node=4\n"), "");
  EXPECT_EQ(job_.gpus(), 8);
  EXPECT_EQ(job_.launch().workers(), v1::LaunchSpec::ONCE);
  EXPECT_EQ(job_.launch().batch().tasks(), 8);
  EXPECT_EQ(job_.launch().batch().tasks_per_node(), 4);
  EXPECT_EQ(Mistake("#SBATCH --ntasks=1 --gpus-per-task=4 -c 3\n"), "");
  EXPECT_EQ(job_.gpus(), 4);
  EXPECT_EQ(Variable("SLURM_CPUS_PER_TASK"), "3");
  EXPECT_EQ(Mistake("#SBATCH --ntasks=3 --gpus=4\n"), "");
  EXPECT_EQ(job_.launch().batch().tasks(), 3);
  EXPECT_EQ(Mistake("#SBATCH --ntasks-per-gpu=2 --gpus=4\n"), "");
  EXPECT_EQ(job_.launch().batch().tasks(), 8);
  EXPECT_EQ(Mistake("#SBATCH --ntasks-per-gpu=2 -n 8\n"), "");
  EXPECT_EQ(job_.gpus(), 4);
  EXPECT_EQ(Mistake("#SBATCH --nodes=2 --gpus=4\n"), "");
  EXPECT_EQ(job_.nodes(), "2");
}

TEST_F(BatchScriptTest, WithoutGpusItRunsOnCpusAlone) {
  EXPECT_EQ(Mistake("#SBATCH --time=5\n"), "");
  EXPECT_TRUE(job_.has_gpus());
  EXPECT_EQ(job_.gpus(), 0);
  EXPECT_EQ(job_.cpus(), "");
  EXPECT_EQ(Mistake("#SBATCH --gres=gpu:0\n"), "");
  EXPECT_EQ(job_.gpus(), 0);
  EXPECT_EQ(Mistake("#SBATCH --nodes=2 --ntasks-per-node=4\n"), "");
  EXPECT_EQ(job_.gpus(), 0);
  EXPECT_EQ(job_.cpus(), "4/node") << "a CPU for each task";
  EXPECT_EQ(Mistake("#SBATCH -n 3 -c 2\n"), "");
  EXPECT_EQ(job_.cpus(), "6");
  EXPECT_EQ(Mistake("# no line\n"), "");
  EXPECT_FALSE(job_.has_gpus());
}

TEST_F(BatchScriptTest, AJobIsKeptWhereItsDependencyFailsUnlessItSaysOtherwise) {
  EXPECT_TRUE(Read("#!/bin/sh\n#SBATCH -G1 --kill-on-invalid-dep=no\n").ok());
  EXPECT_TRUE(job_.keep_on_invalid_dep());
  EXPECT_TRUE(Read("#!/bin/sh\n#SBATCH -G1 --kill-on-invalid-dep=Yes\n").ok());
  EXPECT_FALSE(job_.keep_on_invalid_dep());
  EXPECT_TRUE(Read("#!/bin/sh\n#SBATCH -G1 --kill-on-invalid-dep=yes -d afterok:1\n").ok());
  EXPECT_FALSE(job_.keep_on_invalid_dep());
  EXPECT_TRUE(Read("#!/bin/sh\n#SBATCH -G1 -d afterok:1\n").ok());
  EXPECT_TRUE(job_.keep_on_invalid_dep()) << "as under Slurm";
  EXPECT_THAT(Mistake("#SBATCH -G1 --kill-on-invalid-dep=maybe\n"), HasSubstr("yes or no"));
}

TEST_F(BatchScriptTest, OptionsThatDecideNothingAreKept) {
  EXPECT_EQ(Mistake("#SBATCH --qos=high --comment='my run' --wckey x --mail-user=a@b -G1\n"), "");
  EXPECT_EQ(job_.launch().batch().kept_size(), 4);
  EXPECT_EQ(Kept("qos"), "high");
  EXPECT_EQ(Kept("comment"), "my run");
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(BatchScriptTest, WhatHasNoEffectIsNamedInOneLineAndRefusedWhenStrict) {
  EXPECT_EQ(Mistake("#SBATCH -G1 --hint=nomultithread\n#SBATCH --switches 1 -v\n"), "");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_.front(), HasSubstr("without effect here: --hint ("));
  EXPECT_THAT(warnings_.front(), HasSubstr("train.sh:2), --switches ("));
  EXPECT_THAT(warnings_.front(), HasSubstr("train.sh:3), --verbose ("));
  v1::JobRequest job;
  const Result<BatchScript> script = BatchScript::Read(path_, job);
  ASSERT_TRUE(script.ok());
  const std::string strict = script.value().CheckStrict().error().message;
  EXPECT_EQ(std::count(strict.begin(), strict.end(), '\n'), 2) << strict;
  EXPECT_THAT(strict, HasSubstr("train.sh:2: --hint: it has no effect here"));
}

TEST_F(BatchScriptTest, NamesMayBeCutShortAndCarryTheirValueAsInGetopt) {
  EXPECT_EQ(Mistake("#SBATCH --part=long --job=a -N2 -c2 -G 2 --time=5\n"), "");
  EXPECT_EQ(job_.queue(), "long");
  EXPECT_EQ(job_.name(), "a");
  EXPECT_EQ(job_.nodes(), "2");
  EXPECT_THAT(Mistake("#SBATCH --mem-per=4G\n"), HasSubstr("'--mem-per' is no option of sbatch"));
  EXPECT_THAT(Mistake("#SBATCH --partion=long\n"),
              HasSubstr("train.sh:2: '--partion' is no option of sbatch; did you mean "
                        "'--partition'?"));
}

TEST_F(BatchScriptTest, TheEnvironmentOfTheSubmissionIsTheJobs) {
  setenv("BATCH_TEST_ONE", "1 and more", 1);
  setenv("SLURM_BATCH_TEST", "of another job", 1);
  EXPECT_EQ(Mistake("#SBATCH -G1\n"), "");
  EXPECT_EQ(Variable("BATCH_TEST_ONE"), "1 and more");
  EXPECT_EQ(Variable("SLURM_BATCH_TEST"), "(not set)");
  EXPECT_EQ(Mistake("#SBATCH -G1 --export=ALL,FOO=bar,BATCH_TEST_ONE=2\n"), "");
  EXPECT_EQ(Variable("FOO"), "bar");
  EXPECT_EQ(Variable("BATCH_TEST_ONE"), "2");
  EXPECT_EQ(Mistake("#SBATCH -G1 --export=FOO=bar,BATCH_TEST_ONE\n"), "");
  EXPECT_EQ(Variable("BATCH_TEST_ONE"), "1 and more");
  EXPECT_EQ(Variable("PATH"), "(not set)");
  EXPECT_EQ(Mistake("#SBATCH -G1 --export=NONE\n"), "");
  EXPECT_EQ(Variable("BATCH_TEST_ONE"), "(not set)");
  unsetenv("BATCH_TEST_ONE");
  unsetenv("SLURM_BATCH_TEST");
}

TEST_F(BatchScriptTest, VariablesOfSbatchStandAboveTheScript) {
  setenv("SBATCH_PARTITION", "night", 1);
  setenv("SBATCH_TIMELIMIT", "7", 1);
  setenv("SBATCH_QOS", "low", 1);
  EXPECT_EQ(Mistake("#SBATCH -G1 -p day -t 5\n"), "");
  EXPECT_EQ(job_.queue(), "night");
  EXPECT_EQ(job_.time_s(), 7 * 60);
  EXPECT_EQ(Kept("qos"), "low");
  setenv("SBATCH_TIMELIMIT", "soon", 1);
  EXPECT_THAT(Mistake("#SBATCH -G1\n"), HasSubstr("SBATCH_TIMELIMIT: --time is 'soon'"));
  for (const char* const name : {"SBATCH_PARTITION", "SBATCH_TIMELIMIT", "SBATCH_QOS"}) {
    unsetenv(name);
  }
}

TEST_F(BatchScriptTest, TheNoticeIsTheSignalThatTheScriptAsksFor) {
  EXPECT_EQ(Mistake("#SBATCH -G1 --signal=B:USR1@120\n"), "");
  EXPECT_EQ(job_.launch().batch().notice(), SIGUSR1);
  EXPECT_TRUE(job_.launch().batch().notice_to_script());
  EXPECT_EQ(job_.launch().grace(), 120'000);
  EXPECT_EQ(Mistake("#SBATCH -G1 --signal=SIGINT\n"), "");
  EXPECT_EQ(job_.launch().batch().notice(), SIGINT);
  EXPECT_FALSE(job_.launch().batch().notice_to_script());
  EXPECT_EQ(job_.launch().grace(), 60'000);
  for (const char* const bad : {"USR9", "USR1@soon", "@60", "X:USR1"}) {
    EXPECT_THAT(Mistake(std::string("#SBATCH --signal=") + bad + "\n"),
                HasSubstr("expected [B:]SIGNAL[@SECONDS]"));
  }
}

TEST_F(BatchScriptTest, WhatSlurmTakesOtherwiseIsTakenSo) {
  EXPECT_EQ(Mistake("#SBATCH -G1 --mail-type=end,TIME_LIMIT_80\n"), "");
  EXPECT_THAT(job_.launch().notify(), ElementsAre("end"));
  EXPECT_EQ(Mistake("  # indented\n#SBATCH --gres=none\n"), "");
  EXPECT_TRUE(job_.has_gpus());
  EXPECT_EQ(job_.gpus(), 0);
  EXPECT_EQ(Mistake("#SBATCH --gres=gpu:4\n"), "");
  EXPECT_EQ(job_.nodes(), "1");
  EXPECT_EQ(Mistake("#SBATCH -G4\n"), "");
  EXPECT_EQ(job_.nodes(), "");
}

TEST_F(BatchScriptTest, NiceIsALowerPriority) {
  EXPECT_EQ(Mistake("#SBATCH -G1 --nice=50\n"), "");
  EXPECT_EQ(job_.launch().priority(), -50);
  EXPECT_EQ(Mistake("#SBATCH -G1 --nice\n"), "");
  EXPECT_EQ(job_.launch().priority(), -100);
  EXPECT_THAT(Mistake("#SBATCH --nice=very\n"), HasSubstr("--nice is 'very'"));
}

TEST_F(BatchScriptTest, CpusAndMemoryAreThoseOfSlurm) {
  EXPECT_EQ(Mistake("#SBATCH -c 8 --mem=64G -G 1\n"), "");
  EXPECT_EQ(job_.cpus(), "8");
  EXPECT_EQ(job_.memory(), "64G/node");
  EXPECT_EQ(Mistake("#SBATCH -N2 --ntasks-per-node=4 --cpus-per-task=6 --mem-per-cpu=2000\n"), "");
  EXPECT_EQ(job_.cpus(), "24/node");
  EXPECT_EQ(job_.memory(), "48000M/node");
  EXPECT_EQ(Mistake("#SBATCH -N2 --gpus-per-node=4 -c 6\n"), "");
  EXPECT_EQ(job_.cpus(), "6/node");  // one task on each
  EXPECT_EQ(Mistake("#SBATCH -n 3 -c 2 --mem-per-cpu=1G\n"), "");
  EXPECT_EQ(job_.cpus(), "6");
  EXPECT_EQ(job_.memory(), "6G");
  EXPECT_EQ(Variable("SLURM_MEM_PER_CPU"), "1024");
  EXPECT_EQ(Mistake("#SBATCH -G4 --cpus-per-gpu=4 --mem-per-gpu=16G\n"), "");
  EXPECT_EQ(job_.cpus(), "4/gpu");
  EXPECT_EQ(job_.memory(), "16G/gpu");
  EXPECT_EQ(Variable("SLURM_MEM_PER_GPU"), "16384");
  EXPECT_EQ(Variable("SLURM_CPUS_PER_GPU"), "4");
  EXPECT_EQ(Mistake("#SBATCH -G1 --mem=4gb\n"), "");
  EXPECT_EQ(job_.memory(), "4G/node");
  EXPECT_THAT(Mistake("#SBATCH -G1 --mem=0\n"), HasSubstr("train.sh:2: --mem is '0'; expected"));
  EXPECT_THAT(Mistake("#SBATCH -G1 --mem=lots\n"), HasSubstr("train.sh:2: --mem"));
}

TEST_F(BatchScriptTest, NodesAreChosenAsInSlurm) {
  EXPECT_EQ(Mistake("#SBATCH -N2-4 --gpus-per-node=2 -w n[0-1],v0 -x v1 -C 'nvlink&ib*2'\n"
                    "#SBATCH --exclusive --tmp=100G -L matlab:2\n"),
            "");
  EXPECT_EQ(job_.gpus(), 4);
  EXPECT_EQ(job_.nodes(), "2-4");
  EXPECT_EQ(job_.node_list(), "n[0-1],v0");
  EXPECT_EQ(job_.exclude(), "v1");
  EXPECT_EQ(job_.constraint(), "nvlink&ib*2");
  EXPECT_TRUE(job_.exclusive());
  EXPECT_EQ(job_.tmp(), "100G");
  EXPECT_EQ(job_.licenses(), "matlab:2");
  EXPECT_THAT(Mistake("#SBATCH -G1 --exclusive=user\n"),
              HasSubstr("train.sh:2: --exclusive is 'user'; expected no value"));
  EXPECT_THAT(Mistake("#SBATCH -G1 -C a&\n"), HasSubstr("train.sh:2: by --constraint, "));
}

TEST_F(BatchScriptTest, OutputGoesToTheFilesThatAreNamed) {
  EXPECT_EQ(Mistake("#SBATCH -J \"a$b\" -o %x_%j_%N.out --error=err.%4a -G 1\n"), "");
  ASSERT_EQ(job_.launch().command_size(), 6);
  EXPECT_EQ(job_.launch().command(0), "/bin/sh");
  const std::string& shell = job_.launch().command(2);
  EXPECT_THAT(shell, HasSubstr("out=\"${SLURM_JOB_NAME}_${TRAINYARD_JOB}_$(uname -n"));
  EXPECT_THAT(shell,
              HasSubstr("err=\"err.$(printf %04d ${TRAINYARD_ARRAY_TASK_ID:-4294967294})\""));
  EXPECT_THAT(shell, HasSubstr("exec >>\"$out\" 2>>\"$err\"; exec \"$@\""));
  EXPECT_EQ(job_.launch().command(5), "{the script}");
  EXPECT_EQ(Mistake("#SBATCH --output=x.out -G1\n"), "");
  EXPECT_THAT(job_.launch().command(2), HasSubstr("exec >>\"$out\" 2>&1; exec \"$@\""));
  EXPECT_EQ(Mistake("#SBATCH --error=x.err -G1\n"), "");
  EXPECT_THAT(job_.launch().command(2), HasSubstr("out=\"slurm-${TRAINYARD_JOB}.out\""));
  EXPECT_THAT(job_.launch().command(2), HasSubstr(": >\"$out\""));
  EXPECT_EQ(Mistake("#SBATCH --open-mode=truncate -e err -G1\n"), "");
  EXPECT_THAT(job_.launch().command(2), HasSubstr("; : >\"$out\" || exit; : >\"$err\" || exit; "));
  EXPECT_EQ(Mistake("#SBATCH --open-mode=append -G1\n"), "");
  EXPECT_THAT(job_.launch().command(2), testing::Not(HasSubstr(": >\"$out\"")));
  EXPECT_EQ(Mistake("#SBATCH --input=in.txt -a 1-2 -G1\n"), "");
  EXPECT_THAT(job_.launch().command(2), HasSubstr("exec <\"$in\"; "));
  EXPECT_THAT(job_.launch().command(2), HasSubstr("out=\"slurm-"));
  EXPECT_THAT(
      Mistake("#SBATCH -G1\n#SBATCH --output=%A_%4y.out\n"),
      HasSubstr("train.sh:3: --output is '%A_%4y.out': '%4y' is no placeholder; expected %j"));
  EXPECT_THAT(Mistake("#SBATCH -e a%\n"), HasSubstr("train.sh:2: --error is 'a%': '%' is no"));
}

TEST_F(BatchScriptTest, FilesThatWouldNotBeThereOrBeSharedAreSaid) {
  EXPECT_EQ(Mistake("#SBATCH -G1 -o logs/%j.out\n"), "");
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("train.sh:2: --output is 'logs/%j.out', and there is "
                                    "no folder")));
  EXPECT_EQ(Mistake("#SBATCH -G1 -o /tmp/%j.out\n"), "");
  EXPECT_THAT(warnings_, ElementsAre());
  EXPECT_EQ(Mistake("#SBATCH -G1 -a 1-2 -o %x-%A.out\n"), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("all tasks of the array write to one file")));
  EXPECT_EQ(Mistake("#SBATCH -G1 -a 1-2 -o %A_%a.out\n"), "");
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(BatchScriptTest, ListsOfGpusHaveTheirNumberAndType) {
  EXPECT_EQ(Mistake("#SBATCH --gres=gpu:2,lscratch:3\n"), "");
  EXPECT_EQ(job_.gpus(), 2);
  EXPECT_THAT(job_.gpu_types(), ElementsAre());
  EXPECT_THAT(
      warnings_,
      ElementsAre(testing::MatchesRegex(
          "ignored, as no such resource is given out here: lscratch:3 \\(.*train.sh:2\\)")));
  EXPECT_EQ(Mistake("#SBATCH -N 2 --gpus-per-node=v100:2,mps:50\n"), "");
  EXPECT_EQ(job_.gpus(), 4);
  EXPECT_THAT(job_.gpu_types(), ElementsAre("v100"));
  EXPECT_EQ(Variable("SLURM_GPUS_PER_NODE"), "v100:2");
  EXPECT_EQ(Mistake("#SBATCH --gres=gpu:k80:1,lscratch:2\n#SBATCH -G k80:1(S:0-1)\n"), "");
  EXPECT_EQ(job_.gpus(), 1);
  EXPECT_THAT(warnings_,
              ElementsAre(testing::AllOf(HasSubstr("lscratch:2 ("), HasSubstr("(S:0-1) ("))))
      << "one line";
  EXPECT_THAT(
      Mistake("#SBATCH --gres=gpu:a100:1,gpu:v100:1\n"),
      HasSubstr("train.sh:2: --gres is 'gpu:a100:1,gpu:v100:1': a job has GPUs of one type"));
  EXPECT_THAT(Mistake("#SBATCH --gres=gpu:a100:1\n#SBATCH -G v100:1\n"),
              HasSubstr("train.sh:3: --gpus is 'v100:1': an option before it says type 'a100'"));
}

TEST_F(BatchScriptTest, DosLineEndsAreRefusedWithTheirLine) {
  EXPECT_THAT(Read("#!/bin/bash\r\n#SBATCH --gpus=1\r\n").error().message,
              testing::AllOf(HasSubstr("train.sh:1: the line ends as on DOS (CR LF)"),
                             HasSubstr("dos2unix")));
  EXPECT_THAT(Read("#!/bin/bash\n#SBATCH --gpus=1\n\necho a\r\n").error().message,
              HasSubstr("train.sh:4: the line ends as on DOS"));
  EXPECT_THAT(Mistake("#SBATCH -G1\necho a\r"), HasSubstr("train.sh:3: the line ends as on DOS"));
}

TEST_F(BatchScriptTest, NoTimeLimitHasSeveralNames) {
  for (const char* const text : {"0", "UNLIMITED", "infinite", "0:00", "0-00:00:00"}) {
    EXPECT_EQ(Mistake(std::string("#SBATCH -G1 -t 2:00:00\n#SBATCH --time=") + text + "\n"), "");
    EXPECT_FALSE(job_.has_time_s()) << text;
  }
  EXPECT_THAT(Mistake("#SBATCH --time=1:99:00\n"),
              HasSubstr("train.sh:2: --time is '1:99:00': 99 minutes; expected 0 to 59; expected"));
  EXPECT_THAT(Mistake("#SBATCH --begin=2027-02-30T00:00\n"),
              HasSubstr("train.sh:2: --begin is '2027-02-30T00:00': there is no day 30"));
}

TEST_F(BatchScriptTest, AllFaultsAreToldAtOnceEachWithItsLine) {
  const std::string mistakes = Mistake(
      "#SBATCH --qoss=high --gpus=none\n"
      "# fine\n"
      "#SBATCH --reservation matlab -t soon\n"
      "#SBATCH --array=3-1\n"
      "#SBATCH --dependency=afterwards:3 --priority=1.5\n"
      "#SBATCH --nodes=2 -o %q\n"
      "#SBATCH --ntasks=3 --gres=gpu:4\n");
  EXPECT_EQ(std::count(mistakes.begin(), mistakes.end(), '\n'), 7) << mistakes;
  for (const char* const fault :
       {"train.sh:2: '--qoss' is no", "train.sh:2: --gpus is 'none'",
        "train.sh:4: '--reservation' is refused: there are no reservations here",
        "train.sh:4: --time is 'soon'", "train.sh:5: by --array, '3-1' is no array",
        "train.sh:6: by --dependency, 'afterwards:3' is", "train.sh:6: --priority is '1.5'",
        "train.sh:7: --output is '%q'"}) {
    EXPECT_THAT(mistakes, HasSubstr(fault));
  }
}

TEST_F(BatchScriptTest, WhatTheControllerFindsIsToldWithTheLine) {
  const std::string path = folder_.Write(
      "s.sh",
      "#!/bin/sh\n#SBATCH -G h100:9\n#SBATCH -d afterok:7\n#SBATCH -a 0-9\n#SBATCH -p long\n");
  v1::JobRequest job;
  const Result<BatchScript> script = BatchScript::Read(path, job);
  ASSERT_TRUE(script.ok());
  const auto at_line = [&](const char* message, const std::vector<std::string_view>& others = {}) {
    return script.value().AtLine(Failed(message), others).message.substr(path.size());
  };
  EXPECT_EQ(at_line("it asks for 9 GPUs; the cluster has 4"),
            ":2: it asks for 9 GPUs; the cluster has 4");
  EXPECT_EQ(
      at_line("there is no earlier job 7, for which dependency 'afterok:7' waits").substr(0, 4),
      ":3: ");
  EXPECT_EQ(at_line("10 tasks of the array").substr(0, 4), ":4: ");
  EXPECT_EQ(at_line("queue 'long'").substr(0, 4), ":5: ");
  EXPECT_EQ(at_line("it accepts GPUs of type H100; expected one of cluster 'c': A100").substr(0, 4),
            ":2: ");
  EXPECT_EQ(at_line("it asks for 9 GPUs; the cluster has 4\n"
                    "podman is not there\n"
                    "there is no earlier job 7, for which dependency 'afterok:7' waits"),
            ":2: it asks for 9 GPUs; the cluster has 4\n"
            "podman is not there\n" +
                path + ":3: there is no earlier job 7, for which dependency 'afterok:7' waits")
      << "each fault with its own line, where it has one";
  const std::string plain = "no controller answers at 127.0.0.1:7077";
  EXPECT_EQ(script.value().AtLine(Failed(plain), {}).message, plain);
  EXPECT_EQ(script.value().AtLine(Failed("the cluster has 4 GPUs"), {"gpus"}).message,
            "the cluster has 4 GPUs")
      << "an option of the command line says so";
}

TEST_F(BatchScriptTest, VariablesOfSlurmComeWithItsLines) {
  EXPECT_EQ(Mistake("#SBATCH -N 2 --ntasks-per-node=4\n"), "");
  EXPECT_TRUE(job_.launch().has_batch());
  EXPECT_TRUE(job_.launch().batch().states_tasks());
  EXPECT_EQ(Variable("SLURM_SUBMIT_DIR"), std::filesystem::current_path().string());
  EXPECT_NE(Variable("SLURM_SUBMIT_HOST"), "(not set)");
  EXPECT_EQ(Variable("SLURM_NTASKS_PER_NODE"), "4");
  EXPECT_EQ(Variable("SLURM_GPUS"), "(not set)");
  EXPECT_EQ(Mistake("#SBATCH -G a100:3\n"), "");
  EXPECT_FALSE(job_.launch().batch().states_tasks());
  EXPECT_EQ(Variable("SLURM_GPUS"), "a100:3");
  EXPECT_EQ(Mistake("#SBATC -G 3\n# #SBATCH -G 3\n##SBATCH -G 3\necho\n"), "");
  EXPECT_FALSE(job_.launch().has_batch()) << "no line of sbatch";
  EXPECT_EQ(job_.launch().environment_size(), 0);
}

TEST_F(BatchScriptTest, LinesBehindTheFirstCommandAreNotPassedOverInSilence) {
  const auto warns = ElementsAre(testing::AllOf(HasSubstr("train.sh:5: #SBATCH lines behind"),
                                                HasSubstr("here in line 4, are not read")));
  EXPECT_EQ(Mistake("#SBATCH -G1\n\nset -e\n#SBATCH --time=5\n#SBATCH -n2\n"), "");
  EXPECT_FALSE(job_.has_time_s());
  EXPECT_THAT(warnings_, warns) << "once";
  EXPECT_EQ(Mistake("# a remark\n\nset -e\n#SBATCH -G1\n"), "");
  EXPECT_EQ(job_.gpus(), 0);
  EXPECT_THAT(warnings_, warns) << "and where no other line is there";
  EXPECT_EQ(Mistake("#SBATCH -G1\necho\n##SBATCH -n2\n#SBATCHES\n"), "");
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(BatchScriptTest, AmountsForEachGpuFollowTheGpus) {
  EXPECT_EQ(Mistake("#SBATCH --cpus-per-gpu=4 --mem-per-gpu=8G\n"), "");
  EXPECT_EQ(job_.cpus() + job_.memory(), "") << "it has no GPUs";
  EXPECT_EQ(Mistake("#SBATCH -G2 --cpus-per-gpu=4 --mem-per-cpu=2G\n"), "");
  EXPECT_EQ(job_.cpus(), "4/gpu");
  EXPECT_EQ(job_.memory(), "8G/gpu");
}

TEST_F(BatchScriptTest, NodesForTheJobAloneHaveNoGpusUnlessItAsksForThem) {
  EXPECT_EQ(Mistake("#SBATCH -t 5\n#SBATCH --exclusive\n"), "");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("train.sh:3: --exclusive gives the job all CPUs")));
  EXPECT_EQ(Mistake("#SBATCH --exclusive --gpus-per-node=2\n"), "");
  EXPECT_THAT(warnings_, ElementsAre());
}

// As sbatch has them: they override the lines.
TEST_F(BatchScriptTest, OptionsOfTheCommandStandBehindTheLines) {
  v1::JobRequest job;
  SbatchCall call;
  call.text = "#!/bin/sh\n#SBATCH -J a --gres=gpu:a100:2 -t 5\n";
  call.options = {{SbatchOptionNamed("job-name"), "b"}, {SbatchOptionNamed("gres"), "gpu:v100:1"}};
  ASSERT_TRUE(BatchScript::Read("wrap", job, call).ok());
  EXPECT_EQ(job.name(), "b");
  EXPECT_EQ(job.gpus(), 1);
  EXPECT_THAT(job.gpu_types(), ElementsAre("v100"));
  EXPECT_EQ(job.time_s(), 300);
  call.options = {{SbatchOptionNamed("gres"), "gpu:v100:1,foo:2"},
                  {SbatchOptionNamed("hint"), "nomultithread"}};
  v1::JobRequest warned;
  const Result<BatchScript> script = BatchScript::Read("wrap", warned, call);
  ASSERT_TRUE(script.ok());
  EXPECT_THAT(script.value().warnings(), ElementsAre(testing::AllOf(HasSubstr(": --hint (docs/"),
                                                                    testing::Not(HasSubstr("()"))),
                                                     testing::EndsWith("given out here: foo:2")))
      << "an option of the command has no line";
  v1::JobRequest plain;
  call = {.options = {}, .text = "#!/bin/sh\ntrue\n"};
  ASSERT_TRUE(BatchScript::Read("wrap", plain, call).ok());
  EXPECT_EQ(plain.gpus(), 0) << "it is a script of Slurm without any line";
  EXPECT_EQ(plain.launch().workers(), v1::LaunchSpec::ONCE);
  EXPECT_EQ(plain.name(), "wrap");
}

TEST_F(BatchScriptTest, CallsOfSlurmsCommandsAreNamed) {
  EXPECT_EQ(
      Mistake("#SBATCH -G1\n\nsrun a\nscontrol show hostnames\nsqueue\nsdiag\nsstat\nsprio\n"), "");
  EXPECT_THAT(warnings_, ElementsAre(testing::AllOf(HasSubstr("the script calls sdiag ("),
                                                    HasSubstr("train.sh:7), sprio ("),
                                                    HasSubstr("docs/from-slurm.md"))));
  EXPECT_EQ(Mistake("#SBATCH -G2 -N2\n\nsrun python train.py\n"), "");
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(BatchScriptTest, MistakesAreToldWithTheirLine) {
  EXPECT_THAT(Mistake("#\n#SBATCH --wait\n"),
              HasSubstr("train.sh:3: '--wait' is refused: 'trainyard run' waits for the end"));
  EXPECT_THAT(Mistake("#SBATCH -X\n"),
              HasSubstr(":2: '-X' is no option of sbatch; expected one of its manual page"));
  EXPECT_THAT(Mistake("#SBATCH --job-name\n"),
              HasSubstr("train.sh:2: --job-name has no value; expected one"));
  EXPECT_THAT(Mistake("#SBATCH --time=soon\n"), HasSubstr(":2: --time is 'soon'"));
  EXPECT_THAT(Mistake("#SBATCH --gres=tpu:4\n"),
              HasSubstr("train.sh:2: --gres is 'tpu:4': no GPUs; expected gpu:N or gpu:TYPE:N"));
  EXPECT_THAT(Mistake("#SBATCH --gpus=-1\n"),
              HasSubstr("train.sh:2: --gpus is '-1': '-1' is no number"));
  EXPECT_THAT(Mistake("#SBATCH --mail-type=SOMETIMES\n"), HasSubstr("expected BEGIN, END"));
  EXPECT_THAT(Read("#!\n#SBATCH -G1\n").error().message,
              HasSubstr("train.sh:1: '#!' names no interpreter"));
}

TEST_F(BatchScriptTest, WhatCannotBeAScriptIsSaidAsWhatItIs) {
  const auto refusal = [](const std::string& path) {
    v1::JobRequest job;
    const Result<BatchScript> script = BatchScript::Read(path, job);
    return script.ok() ? "" : script.error().message;
  };
  EXPECT_THAT(refusal("/no/such/file"),
              HasSubstr("begins with #! (there is no such file); expected"));
  EXPECT_THAT(refusal(folder_.Write("b", "echo\n")),
              HasSubstr("/b' is no script that begins with #!; expected one, or -- before"));
  EXPECT_THAT(refusal(folder_.Write("c", "")), HasSubstr("(it is empty)"));
  EXPECT_THAT(refusal(folder_.Write("d", "\xEF\xBB\xBF#!/bin/sh\n")), HasSubstr("byte order mark"));
  EXPECT_THAT(refusal(folder_.Write("e", std::string("\x7f"
                                                     "ELF\0\1",
                                                     6))),
              HasSubstr("is no script"));
  EXPECT_THAT(refusal(folder_.Write("f", std::string("#!/bin/sh\n\0x", 12))),
              HasSubstr("f:2: a NUL"));
  EXPECT_THAT(refusal(folder_.Write("g", "#!")), HasSubstr("g:1: '#!' names no interpreter"));
  EXPECT_THAT(refusal(std::filesystem::path(folder_.Write("h", "")).parent_path()),
              HasSubstr("(it is a folder)"));
  EXPECT_THAT(refusal(folder_.Write("i", std::string(5 << 20, '#'))), HasSubstr("more than 1 MiB"));
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("(it is empty)"));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("more than 1 MiB"));
}

TEST_F(BatchScriptTest, AScriptMayComeFromAPipe) {
  v1::JobRequest job;
  const auto refusal = [&job](std::string_view text) -> std::string {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
    job = {};
    const Result<BatchScript> script = BatchScript::Read("/dev/fd/" + std::to_string(ends[0]), job);
    close(ends[0]);
    return script.ok() ? "" : script.error().message;
  };
  EXPECT_EQ(refusal("#!/bin/sh\n#SBATCH -G 2\necho hello\n"), "");
  EXPECT_EQ(job.gpus(), 2);
  EXPECT_EQ(job.launch().batch().script(), "#!/bin/sh\n#SBATCH -G 2\necho hello\n");
  EXPECT_THAT(refusal("#!/bin/sh\necho hello\n"),
              HasSubstr("is no file that stays, and has no #SBATCH line at its head"));
  EXPECT_THAT(refusal(""), HasSubstr("(it is empty)"));
}

}  // namespace
}  // namespace trainyard::requests
