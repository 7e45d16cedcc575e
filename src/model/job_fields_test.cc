// SPDX-License-Identifier: Apache-2.0
#include "model/job_fields.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace trainyard::model {
namespace {

// A job that states something of each kind.
JobDraft Draft() {
  JobDraft draft;
  draft.spec.name = "a";
  draft.spec.gpus = 3;
  draft.spec.queue = "q";
  draft.spec.launch = "bytes";
  draft.traits.range = {.least = 2, .most = 4};
  draft.traits.dependency = "afterok:7";
  draft.traits.time_limit = std::chrono::seconds(9);
  draft.traits.array = "0-3";
  draft.traits.data_set = DataSet{.name = "d", .mib = 5, .home = "/d"};
  return draft;
}

// A snapshot of a program with fewer fields is read, whatever their number: nothing of the fields
// that both know is lost, and the others are as in a new job.
TEST(JobFieldsTest, JobsOfProgramsWithFewerFieldsAreRead) {
  const JobSpec whole = Draft().Take();
  const JobSpec none;
  for (int fields = 0; fields <= static_cast<int>(kJobFieldCount); ++fields) {
    StateStream out;
    out.SetJobFields(fields);
    JobSpec written = whole;
    out(written);
    StateStream in{out.bytes()};
    in.SetJobFields(fields);
    JobSpec read;
    in(read);
    ASSERT_TRUE(in.complete()) << fields;
    int told = 0;
    ForEachJobField([&]<typename Owner, typename T>(const JobField<Owner, T>& field) {
      const bool is_known = field.info.journal.place <= fields;
      const T& expected = ValueOf(field, is_known ? whole : none);
      EXPECT_TRUE(ValueOf(field, read) == expected) << fields << " " << field.info.name;
      told += is_known && States(whole, field) ? 1 : 0;
    });
    if (fields == static_cast<int>(kJobFieldCount)) {
      EXPECT_GE(told, 8);
    }
  }
}

}  // namespace
}  // namespace trainyard::model
