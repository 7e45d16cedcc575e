// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/srun_options.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

namespace trainyard::requests {
namespace {

TEST(SrunOptionsTest, EachNameAndLetterStandsOnce) {
  for (const std::vector<SbatchOption>* const options : {&SrunOptions(), &SallocOptions()}) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const SbatchOption& option : *options) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name;
      EXPECT_TRUE(option.letter == 0 || letters.insert(option.letter).second) << option.letter;
    }
  }
  EXPECT_EQ(PartOfSrun("label"), OptionPart::kStep);
  EXPECT_EQ(PartOfSrun("jobid"), OptionPart::kCommand);
  EXPECT_EQ(PartOfSrun("gpus"), OptionPart::kJob);
  EXPECT_EQ(PartOfSalloc("no-shell"), OptionPart::kCommand);
}

}  // namespace
}  // namespace trainyard::requests
