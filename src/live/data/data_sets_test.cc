// SPDX-License-Identifier: Apache-2.0
// Jobs with data sets.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

// Both nodes have room for copies.
class DataSetsTest : public LiveWorldTest {
 protected:
  static v1::DataReport Copies(std::uint64_t number, const std::vector<std::string>& held) {
    v1::DataReport data;
    data.set_number(number);
    data.set_cache_mib(100);
    data.set_rate_kbps(1000);
    for (const std::string& name : held) {
      v1::DataSet& set = *data.add_held();
      set.set_name(name);
      set.set_mib(40);
      set.set_home("/store");
    }
    return data;
  }
  void HelloWith(std::uint64_t connection, const std::string& node, const v1::DataReport& data,
                 const std::vector<v1::AttemptReport>& attempts = {}) {
    v1::AgentMessage message = HelloOf(node, attempts);
    *message.mutable_hello()->mutable_data() = data;
    controller_->world().OnAgent(connection, message);
    Step();
  }
  void TellCopies(std::uint64_t connection, const v1::DataReport& data) {
    v1::AgentMessage message;
    *message.mutable_data() = data;
    controller_->world().OnAgent(connection, message);
    Step();
  }
  static v1::ClientRequest With(int gpus, const std::string& name, std::int64_t mib = 40,
                                const std::string& home = "/store") {
    v1::ClientRequest request = Submission(gpus);
    v1::DataSet& set = *request.mutable_submit()->mutable_job()->mutable_data_set();
    set.set_name(name);
    set.set_mib(mib);
    set.set_home(home);
    return request;
  }
  void TellFetched(std::uint64_t connection, double fetched) {
    v1::AttemptReport report = Report(1, 1, v1::AttemptReport::FETCHING);
    report.set_fetched(fetched);
    Tell(connection, report);
  }
  std::string HeldBy(int node) {
    std::string names;
    v1::ClientRequest question;
    question.mutable_nodes();
    const v1::ClientReply reply = Call(question);
    for (const v1::DataSet& set : reply.nodes().nodes(node).data_sets()) {
      names += set.name() + " ";
    }
    return names;
  }
};

TEST_F(DataSetsTest, AGangStartsWhenAllItsNodesHaveTheData) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Heard(10);
  Heard(11);
  EXPECT_EQ(Call(With(3, "pets")).submit().job(), 1U);
  const std::vector<v1::ControllerMessage> heard = Heard(10);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].fetch().id().attempt(), 1U);
  EXPECT_EQ(heard[0].fetch().data_set().home(), "/store");
  EXPECT_EQ(Heard(11).size(), 1U);
  TellFetched(10, 0.25);
  TellFetched(11, 0.5);
  EXPECT_EQ(StateOf(1), v1::STARTING);
  EXPECT_EQ(StatusOf(1).reason(), "fetches data set pets onto a, 25 %, onto b, 50 %");
  Tell(10, Report(1, 1, v1::AttemptReport::READY));
  TellFetched(10, 0.9);  // late
  EXPECT_EQ(StatusOf(1).reason(), "fetches data set pets onto b, 50 %");
  EXPECT_TRUE(Heard(10).empty());
  Tell(11, Report(1, 1, v1::AttemptReport::READY));
  EXPECT_EQ(KindsHeard(10) + KindsHeard(11), "start start ");
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(10, Report(1, 1, v1::AttemptReport::READY));  // late
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
}

TEST_F(DataSetsTest, NodesWithoutRoomAndHomesWithoutAFolderNeedNoFetch) {
  Hello(10, "a");
  HelloWith(11, "b", Copies(0, {}));
  Heard(10);
  Heard(11);
  Call(With(2, "pets"));
  EXPECT_EQ(KindsHeard(10), "start ");
  Call(With(2, "other", 40, "n7"));
  EXPECT_EQ(KindsHeard(11), "start ");
}

TEST_F(DataSetsTest, SubmitSaysWhereNoNodeKeepsCopies) {
  const v1::ClientReply alone = Call(With(2, "pets"));
  ASSERT_EQ(alone.submit().ignored_size(), 1);
  EXPECT_EQ(alone.submit().ignored(0),
            "data set 'pets' is not copied: no agent that is there has --data-cache; the job reads "
            "it at '/store'");
  EXPECT_EQ(Call(With(2, "other", 40, "n7")).submit().ignored_size(), 0);
  HelloWith(11, "b", Copies(0, {}));
  EXPECT_EQ(Call(With(2, "pets")).submit().ignored_size(), 0);
}

TEST_F(DataSetsTest, AnOrderThatIsLostIsGivenAgain) {
  HelloWith(10, "a", Copies(0, {}));
  Call(With(2, "pets"));
  Heard(10);
  TellFetched(10, 0.25);
  controller_->world().OnAgentGone(10);
  Step();
  HelloWith(11, "a", Copies(1, {}));  // another agent: it knows nothing
  EXPECT_EQ(KindsHeard(11), "welcome fetch ");
  controller_->world().OnAgentGone(11);
  Step();
  HelloWith(12, "a", Copies(2, {"pets"}), {Report(1, 1, v1::AttemptReport::READY)});
  EXPECT_EQ(KindsHeard(12), "welcome start ");
  controller_->world().OnAgentGone(12);  // and with it the order to start
  Step();
  HelloWith(13, "a", Copies(2, {"pets"}), {Report(1, 1, v1::AttemptReport::READY)});
  EXPECT_EQ(KindsHeard(13), "welcome start ");
}

TEST_F(DataSetsTest, ARestartedControllerWaitsForTheDataAgain) {
  HelloWith(10, "a", Copies(0, {}));
  Call(With(2, "pets"));
  TellFetched(10, 0.25);
  Open();
  HelloWith(11, "a", Copies(0, {}), {Report(1, 1, v1::AttemptReport::FETCHING)});
  EXPECT_EQ(KindsHeard(11), "welcome ");
  Tell(11, Report(1, 1, v1::AttemptReport::READY));
  EXPECT_EQ(KindsHeard(11), "start ");
}

TEST_F(DataSetsTest, ACancelledJobTakesItsFetchBack) {
  HelloWith(10, "a", Copies(0, {}));
  Call(With(2, "pets"));
  Heard(10);
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  EXPECT_EQ(KindsHeard(10), "stop ");
  Submit(2);
  EXPECT_EQ(KindsHeard(10), "start ") << "no process is in the way";
  v1::AttemptReport gone = Report(1, 1, v1::AttemptReport::EXITED);
  gone.set_lost(true);
  Tell(10, gone);
  EXPECT_EQ(KindsHeard(10), "forget ");
}

TEST_F(DataSetsTest, AFetchThatFailsIsTheNodesFault) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Call(With(2, "pets"));
  Heard(11);
  v1::AttemptReport failed = Report(1, 1, v1::AttemptReport::EXITED, 126);
  failed.set_cause(v1::AttemptReport::DATA);
  failed.set_message("data set 'pets' cannot be fetched onto a: ssh: Connection refused");
  Tell(10, failed);
  EXPECT_EQ(StatusOf(1).failures(), 0U);
  const std::vector<v1::ControllerMessage> heard = Heard(11);
  ASSERT_EQ(heard.size(), 1U) << "it goes on elsewhere";
  EXPECT_EQ(heard[0].fetch().id().attempt(), 2U);
}

TEST_F(DataSetsTest, ASetThatNoNodeSeesIsTheJobsFault) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Call(With(2, "pets"));
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    v1::AttemptReport failed = Report(1, attempt, v1::AttemptReport::EXITED, 126);
    failed.set_cause(v1::AttemptReport::NO_DATA);
    failed.set_message("data set 'pets' cannot be fetched: No such file or directory");
    Tell(9 + attempt, failed);
  }
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).reason(), "data set 'pets' cannot be fetched: No such file or directory");
}

TEST_F(DataSetsTest, ASetThatNoNodeCanFetchIsTheJobsFault) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Call(With(2, "pets"));
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    v1::AttemptReport failed = Report(1, attempt, v1::AttemptReport::EXITED, 126);
    failed.set_cause(v1::AttemptReport::DATA);
    failed.set_message("data set 'pets' cannot be fetched: Could not resolve hostname nohost");
    Tell(9 + attempt, failed);
  }
  EXPECT_EQ(StateOf(1), v1::FAILED);
  Call(Submission(1));
  EXPECT_EQ(StatusOf(2).reason().find("all starts wait"), std::string::npos) << "others go on";
}

TEST_F(DataSetsTest, WhatNodesKeepIsToldToTheEngineOnceAndSurvives) {
  HelloWith(10, "a", Copies(0, {}));
  TellCopies(10, Copies(2, {"pets"}));
  EXPECT_EQ(HeldBy(0), "pets ");
  const std::string before = controller_->digest();
  TellCopies(10, Copies(1, {}));  // late
  EXPECT_EQ(HeldBy(0), "pets ");
  TellCopies(10, Copies(3, {"pets"}));
  EXPECT_EQ(controller_->digest(), before) << "nothing new";
  const std::string state = controller_->StateDigest();
  Open();  // compares with a replay
  EXPECT_EQ(controller_->StateDigest(), state);
  HelloWith(11, "a", Copies(3, {"pets", "cars"}));
  EXPECT_EQ(HeldBy(0), "pets cars ");
  EXPECT_NE(controller_->StateDigest(), state);
  Open();
}

TEST_F(DataSetsTest, ANameHasOneMeaningAtATime) {
  Call(With(2, "pets"));
  EXPECT_EQ(ErrorOf(With(2, "pets", 41)),
            "data set 'pets' has 40 MiB in '/store' for jobs that have not ended, and 41 MiB in "
            "'/store' for this one; expected the same, or another name");
  EXPECT_EQ(ErrorOf(With(2, "pets")), "");
  EXPECT_EQ(ErrorOf(With(2, "")),
            "the name of the data set is empty, or has control characters or more than 80 bytes");
  EXPECT_EQ(ErrorOf(With(2, "none", 0)),
            "data set 'none' has 0 MiB; expected an integer from 1 to 1000000000");
  v1::ClientRequest cancel;
  for (const std::uint64_t job : {1U, 2U}) {
    cancel.mutable_cancel()->set_job(job);
    Call(cancel);
  }
  EXPECT_EQ(ErrorOf(With(2, "pets", 41)), "") << "nobody uses it any more";
}

}  // namespace
}  // namespace trainyard::live
