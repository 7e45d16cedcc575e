// SPDX-License-Identifier: Apache-2.0
// Updates of the tasks of an array.
#include <gtest/gtest.h>

#include <string>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

TEST_F(LiveWorldTest, BeginAndDependencyAreThoseOfAWholeArray) {
  v1::ClientRequest array = Submission(1);
  array.mutable_submit()->mutable_job()->set_array("0-2");
  array.mutable_submit()->mutable_job()->set_begin_s(60);
  Call(array);
  v1::ClientRequest request;
  v1::UpdateRequest& update = *request.mutable_update();
  update.set_job(2);
  update.add_fields("begin");
  update.mutable_values()->set_begin_s(600);
  EXPECT_EQ(ErrorOf(request), "begin and dependency are those of the whole array; expected job 1");
  for (const std::uint64_t job : {1U, 2U, 3U}) {  // the others have it from the first
    update.set_job(job);
    EXPECT_EQ(ErrorOf(request), "");
  }
  const auto waits_for_begin = [this](std::uint64_t job) {
    return StatusOf(job).reason().find("begins in") != std::string::npos;
  };
  Step(seconds(60));
  EXPECT_TRUE(waits_for_begin(1) && waits_for_begin(3)) << StatusOf(3).reason();
  Open();
  Step(seconds(541));
  EXPECT_FALSE(waits_for_begin(1) || waits_for_begin(3)) << StatusOf(3).reason();
}

}  // namespace
}  // namespace trainyard::live
