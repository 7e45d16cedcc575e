// SPDX-License-Identifier: Apache-2.0
#include "cli/live/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/scratch_folder.h"

namespace trainyard::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BatchScriptTest : public testing::Test {
 protected:
  Status Read(const std::string& text, const std::vector<std::string>& arguments = {}) {
    path_ = folder_.Write("train.sh", text);
    job_ = {};
    return ReadBatchScript(path_, arguments, job_);
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
};

TEST_F(BatchScriptTest, LinesAtTheHeadAreOptions) {
  ASSERT_TRUE(Read("#!/bin/bash -l\n"
                   "# A remark.\n"
                   "#SBATCH --job-name=\"bert large\" -p long   # why not\n"
                   "#SBATCH -N 2 --gres=gpu:a100:4\n"
                   "#SBATCH --time 1-12:00:00\n"
                   "\n"
                   "##SBATCH --account=nobody\n"
                   "#SBATCH --dependency=afterok:3 --array=0-9%2 -D /data\n"
                   "#SBATCH --mail-type=END,FAIL --export=NONE,SEED=7\n"
                   "python3 train.py\n"
                   "#SBATCH --nonsense\n",
                   {"--lr", "0.1"})
                  .ok());
  EXPECT_EQ(job_.name(), "bert large");
  EXPECT_EQ(job_.queue(), "long");
  EXPECT_EQ(job_.gpus(), 8);
  EXPECT_THAT(job_.gpu_types(), ElementsAre("a100"));
  EXPECT_EQ(job_.time_s(), 36 * 3600);
  EXPECT_EQ(job_.dependency(), "afterok:3");
  EXPECT_EQ(job_.array(), "0-9%2");
  EXPECT_EQ(job_.launch().working_directory(), "/data");
  EXPECT_THAT(job_.launch().notify(), ElementsAre("end", "fail"));
  ASSERT_EQ(job_.launch().environment_size(), 1);
  EXPECT_EQ(job_.launch().environment(0).name(), "SEED");
  EXPECT_EQ(job_.launch().workers(), v1::LaunchSpec::PER_NODE);
  EXPECT_THAT(job_.launch().command(), ElementsAre("/bin/bash", "-l", Absolute(), "--lr", "0.1"));
}

TEST_F(BatchScriptTest, APlainTimeIsMinutes) {
  EXPECT_EQ(Mistake("#SBATCH -t 90 -G 1\n"), "");
  EXPECT_EQ(job_.time_s(), 90 * 60);
  EXPECT_EQ(job_.name(), "train.sh");
}

TEST_F(BatchScriptTest, TasksAreWorkers) {
  EXPECT_EQ(Mistake("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"), "");
  EXPECT_EQ(job_.gpus(), 8);
  EXPECT_EQ(job_.launch().workers(), v1::LaunchSpec::PER_GPU);
  EXPECT_EQ(Mistake("#SBATCH --ntasks=1 --gpus-per-task=4\n"), "");
  EXPECT_EQ(job_.gpus(), 4);
  EXPECT_EQ(job_.launch().workers(), v1::LaunchSpec::PER_NODE);
  EXPECT_THAT(Mistake("#SBATCH --ntasks=3 --gpus=4\n"),
              HasSubstr("states 3 tasks for 4 GPUs on 1 node; expected"));
  EXPECT_THAT(Mistake("#SBATCH --nodes=2 --gpus=4\n"), HasSubstr("expected --gpus-per-node"));
}

TEST_F(BatchScriptTest, OutputGoesToTheFilesThatAreNamed) {
  EXPECT_EQ(Mistake("#SBATCH -J \"a$b\" -o logs/%x-%j.out --error=err.%a -G 1\n"), "");
  EXPECT_THAT(job_.launch().command(),
              ElementsAre("/bin/sh", "-c",
                          "exec >>\"logs/a\\$b-$TRAINYARD_JOB.out\" "
                          "2>>\"err.$TRAINYARD_ARRAY_TASK_ID\"; exec \"$@\"",
                          "sh", "/bin/sh", Absolute()));
}

TEST_F(BatchScriptTest, MistakesAreToldWithTheirLine) {
  EXPECT_THAT(Mistake("#\n#SBATCH --account=me\n"),
              HasSubstr("train.sh:3: '--account' has no meaning here; expected no such line: there "
                        "are no accounts; shares are those of the job's user"));
  EXPECT_THAT(Mistake("#SBATCH --licenses=x\n"),
              HasSubstr(":2: '--licenses' is not supported; expected one of --job-name, "));
  EXPECT_THAT(Mistake("#SBATCH -X\n"), HasSubstr(":2: '-X' is not supported"));
  EXPECT_THAT(Mistake("#SBATCH --job-name\n"),
              HasSubstr("train.sh:2: --job-name has no value; expected one"));
  EXPECT_THAT(Mistake("#SBATCH --time=soon\n"), HasSubstr(":2: by --time, --time is 'soon'"));
  EXPECT_THAT(Mistake("#SBATCH --gres=tpu:4\n"),
              HasSubstr("train.sh:2: --gres is 'tpu:4'; expected gpu:N or gpu:TYPE:N"));
  EXPECT_THAT(Mistake("#SBATCH --gpus=none\n"),
              HasSubstr("train.sh:2: --gpus is 'none'; expected a number from 1 on"));
  EXPECT_THAT(Mistake("#SBATCH --export=ALL\n"), HasSubstr("expected NONE or NAME=VALUE"));
  EXPECT_THAT(Mistake("#SBATCH --mail-type=ARRAY_TASKS\n"), HasSubstr("expected BEGIN, END"));
}

TEST_F(BatchScriptTest, AScriptBeginsWithItsInterpreter) {
  EXPECT_TRUE(IsScript(folder_.Write("a", "#!/bin/sh\n")));
  EXPECT_FALSE(IsScript(folder_.Write("b", "echo\n")));
  EXPECT_FALSE(IsScript("/no/such/file"));
}

}  // namespace
}  // namespace trainyard::cli
