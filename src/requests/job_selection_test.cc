// SPDX-License-Identifier: Apache-2.0
#include "requests/job_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::requests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JobSelectionTest, ACallThatChangesJobsTakesNumbersOrFilters) {
  const Result<v1::Selection> numbers = SelectionOf({.jobs = {"12", "12_3"}});
  ASSERT_TRUE(numbers.ok()) << numbers.error().message;
  EXPECT_THAT(numbers.value().jobs(), ElementsAre("12", "12_3"));

  const Result<v1::Selection> filters =
      SelectionOf({.names = {"bert-*"}, .users = {"ann"}, .queues = {"q"}, .states = {"Running"}});
  ASSERT_TRUE(filters.ok()) << filters.error().message;
  EXPECT_THAT(filters.value().names(), ElementsAre("bert-*"));
  EXPECT_THAT(filters.value().users(), ElementsAre("ann"));
  EXPECT_THAT(filters.value().queues(), ElementsAre("q"));
  EXPECT_THAT(filters.value().states(), ElementsAre(v1::RUNNING));
}

TEST(JobSelectionTest, NeitherNumbersNorFiltersAndBothAreRefused) {
  EXPECT_THAT(SelectionOf({}).error().message, HasSubstr("no job is named"));
  EXPECT_THAT(SelectionOf({.jobs = {"1"}, .users = {"ann"}}).error().message,
              HasSubstr("expected one of both"));
}

TEST(JobSelectionTest, TextsThatAreNoJobAndUnknownStatesAreRefused) {
  const Result<v1::Selection> job = SelectionOf({.jobs = {"twelve"}});
  EXPECT_EQ(job.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(job.error().message, HasSubstr("'twelve' is no job"));
  EXPECT_THAT(FilterCall({.states = {"runing"}}, true).error().message,
              HasSubstr("--state: unknown state 'runing'"));
  EXPECT_THAT(FilterCall({.states = {"PENDING"}}, true).error().message,
              HasSubstr("'PENDING' is a state of Slurm; here it is 'waiting'"));
}

TEST(JobSelectionTest, AnEmptyFilterIsRefused) {
  EXPECT_EQ(SelectionOf({.queues = {""}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(SelectionOf({.queues = {"a", ""}}).error().message,
            "--queue has an empty value; expected the queue of jobs, or no --queue");
  EXPECT_THAT(SelectionOf({.names = {""}}).error().message, HasSubstr("--name has an empty value"));
  EXPECT_THAT(SelectionOf({.users = {""}}).error().message, HasSubstr("--user has an empty value"));
  EXPECT_THAT(FilterCall({.states = {""}}, true).error().message,
              HasSubstr("--state has an empty value"));
}

TEST(JobSelectionTest, AFilterByAnEndedStateAsksForEndedJobs) {
  EXPECT_TRUE(FilterCall({.states = {"waiting"}}, true).value().jobs().live_only());
  EXPECT_FALSE(FilterCall({.states = {"completed"}}, true).value().jobs().live_only());
  EXPECT_FALSE(FilterCall({.states = {"waiting"}}, false).value().jobs().live_only());
}

}  // namespace
}  // namespace trainyard::requests
