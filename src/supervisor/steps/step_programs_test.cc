// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainyard::supervisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Command = std::vector<std::string>;

std::vector<Command> Programs(std::string_view text, int tasks, const Command& more = {}) {
  const auto programs = ReadStepPrograms(text, "silly.conf", tasks, more);
  EXPECT_TRUE(programs.ok()) << programs.error().message;
  return programs.ok() ? programs.value() : std::vector<Command>();
}

std::string Fault(std::string_view text, int tasks) {
  const auto programs = ReadStepPrograms(text, "silly.conf", tasks, {});
  EXPECT_FALSE(programs.ok());
  return programs.ok() ? "" : programs.error().message;
}

TEST(StepProgramsTest, AQuoteThatIsEscapedOpensNothing) {
  EXPECT_EQ(Programs("* echo it\\'s 'a b'\n", 1).front(), (Command{"echo", "it's", "a b"}));
}

// The example of the manual page.
TEST(StepProgramsTest, EachTaskRunsTheProgramOfItsLine) {
  const std::vector<Command> programs = Programs(
      "# srun multiple program configuration file\n"
      "4-6       hostname\n"
      "1,7       echo  task:%t\n"
      "\n"
      "0,2-3     echo  offset:%o\n",
      8, {"more of it"});
  EXPECT_THAT(
      programs,
      ElementsAre(
          Command{"echo", "offset:0", "more of it"}, Command{"echo", "task:1", "more of it"},
          Command{"echo", "offset:1", "more of it"}, Command{"echo", "offset:2", "more of it"},
          Command{"hostname", "more of it"}, Command{"hostname", "more of it"},
          Command{"hostname", "more of it"}, Command{"echo", "task:7", "more of it"}));
}

// As Slurm 22.05 has been seen to.
TEST(StepProgramsTest, WordsAreReadAsSlurmReadsThem) {
  const std::vector<Command> programs = Programs(
      "2,0 sh -c 'echo $SLURM_PROCID %t' \"c d\" e\\ f %t%o it''s a'b c'd\n"
      " 1  echo one \\\n"
      "  two\n"
      "*   rest %o",
      4);
  EXPECT_THAT(programs[0], ElementsAre("sh", "-c", "echo $SLURM_PROCID %t", "\"c", "d\"", "e f",
                                       "01", "its", "ab cd"));
  EXPECT_EQ(programs[2][6], "20") << "the offset is the place in the list";
  EXPECT_THAT(programs[1], ElementsAre("echo", "one", "two"));
  EXPECT_THAT(programs[3], ElementsAre("rest", "3"));
}

TEST(StepProgramsTest, AFaultIsToldWithItsLine) {
  EXPECT_THAT(Fault("0 a\n1-x b\n", 4), HasSubstr("silly.conf:2: '1-x' is no task"));
  EXPECT_THAT(Fault("3-1 b\n", 4), HasSubstr("silly.conf:1: '3-1' is no task"));
  EXPECT_THAT(Fault("0-1 a\n1-2 b\n* c\n", 4), HasSubstr("silly.conf:2: task 1 has a program"));
  EXPECT_THAT(Fault("* a\n1 b\n", 4), HasSubstr("silly.conf:1: * is not in the last line"));
  EXPECT_THAT(Fault("9 a\n* b\n", 4), HasSubstr("there is no task 9; expected ranks from 0 to 3"));
  EXPECT_THAT(Fault("0\n* b\n", 4), HasSubstr("silly.conf:1: no program"));
  EXPECT_THAT(Fault("0 echo 'a\n* b\n", 4), HasSubstr("silly.conf:1: a ' is not closed"));
  EXPECT_THAT(Fault("0-1 a\n", 4), HasSubstr("No executable program specified for this task: 2"));
}

}  // namespace
}  // namespace trainyard::supervisor
