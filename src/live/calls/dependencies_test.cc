// SPDX-License-Identifier: Apache-2.0
// What jobs say that wait for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using testing::HasSubstr;

class DependenciesTest : public LiveWorldTest {
 protected:
  static v1::ClientRequest After(const std::string& dependency, bool keeps,
                                 const std::string& array = "") {
    v1::ClientRequest request = Submission(1);
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_dependency(dependency);
    job.set_keep_on_invalid_dep(keeps);
    job.set_array(array);
    return request;
  }
  void Cancel(std::uint64_t job) {
    v1::ClientRequest request;
    request.mutable_cancel()->set_job(job);
    Call(request);
  }
  std::string CodeOf(std::uint64_t job) { return StatusOf(job).reason_code(); }
};

TEST_F(DependenciesTest, AJobThatCanNeverStartIsKeptIfItsUserSaysSo) {
  Submit(1);
  Call(After("afterok:1", false));
  Call(After("afterok:1", true));
  EXPECT_EQ(CodeOf(3), "Dependency");
  Cancel(1);
  EXPECT_EQ(StateOf(2), v1::REJECTED);
  EXPECT_EQ(CodeOf(2), "DependencyNeverSatisfied");
  EXPECT_EQ(StateOf(3), v1::WAITING);
  EXPECT_EQ(CodeOf(3), "DependencyNeverSatisfied");
  EXPECT_THAT(StatusOf(3).reason(), HasSubstr("cannot be met any more: job 1 is cancelled; "
                                              "'trainyard update --dependency'"));
  Open();
  EXPECT_EQ(CodeOf(3), "DependencyNeverSatisfied") << "also after a restart";
  v1::ClientRequest update;
  update.mutable_update()->set_job(3);
  update.mutable_update()->add_fields("dependency");
  update.mutable_update()->mutable_values()->set_dependency("afternotok:1");
  EXPECT_EQ(ErrorOf(update), "");
  EXPECT_NE(CodeOf(3), "DependencyNeverSatisfied");
}

TEST_F(DependenciesTest, EachTaskSaysForWhichOneItWaits) {
  v1::ClientRequest array = Submission(1);
  array.mutable_submit()->mutable_job()->set_array("0-2");
  Call(array);                              // 1, 2, 3
  Call(After("aftercorr:1", true, "0-2"));  // 4, 5, 6
  EXPECT_THAT(StatusOf(5).reason(), HasSubstr("waits for job 1_1"));
  EXPECT_THAT(StatusOf(6).reason(), HasSubstr("waits for job 1_2"));
  Cancel(2);
  EXPECT_EQ(CodeOf(4), "Dependency");
  EXPECT_EQ(CodeOf(5), "DependencyNeverSatisfied");
  EXPECT_THAT(StatusOf(5).reason(), HasSubstr("job 1_1 is cancelled"));
  EXPECT_EQ(CodeOf(6), "Dependency");
  Call(After("aftercorr:1", false, "0-2"));  // 7, 8, 9
  EXPECT_EQ(StateOf(7), v1::WAITING);
  EXPECT_EQ(StateOf(8), v1::REJECTED);
  Open();
  EXPECT_EQ(CodeOf(5), "DependencyNeverSatisfied");
  EXPECT_EQ(StateOf(8), v1::REJECTED);
}

}  // namespace
}  // namespace trainyard::live
