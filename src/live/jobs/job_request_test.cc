// SPDX-License-Identifier: Apache-2.0
#include "live/jobs/job_request.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "base/text.h"
#include "model/request/node_request.h"

namespace trainyard::live {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// As live.proto writes it: "optional double", "repeated SoftDeadline".
std::string TypeOf(const FieldDescriptor& field) {
  const std::string type = field.type() == FieldDescriptor::TYPE_MESSAGE
                               ? field.message_type()->name()
                               : field.type_name();
  return (field.is_repeated()                                       ? "repeated "
          : field.has_presence() && field.message_type() == nullptr ? "optional "
                                                                    : "") +
         type;
}

template <typename T>
struct TypeFor;
template <>
struct TypeFor<std::string> {
  static constexpr const char* kName = "string";
};
template <>
struct TypeFor<int> {
  static constexpr const char* kName = "int32";
};
template <>
struct TypeFor<std::int64_t> {
  static constexpr const char* kName = "int64";
};
template <>
struct TypeFor<bool> {
  static constexpr const char* kName = "bool";
};
template <>
struct TypeFor<std::optional<double>> {
  static constexpr const char* kName = "optional double";
};
template <>
struct TypeFor<std::optional<Duration>> : TypeFor<std::optional<double>> {};
template <>
struct TypeFor<std::optional<TimePoint>> : TypeFor<std::optional<double>> {};
template <>
struct TypeFor<std::optional<StageTimes>> {
  static constexpr const char* kName = "StageTimes";
};
template <>
struct TypeFor<std::vector<SoftDeadline>> {
  static constexpr const char* kName = "repeated SoftDeadline";
};
template <>
struct TypeFor<std::vector<std::string>> {
  static constexpr const char* kName = "repeated string";
};
template <model::HasText T>
struct TypeFor<T> {
  static constexpr const char* kName = "string";
};
template <>
struct TypeFor<std::optional<DataSet>> {
  static constexpr const char* kName = "DataSet";
};
template <>
struct TypeFor<Slices> {
  static constexpr const char* kName = "repeated NodeGrant";
};

TEST(JobRequestTest, TheMessageHasTheFieldsOfTheTable) {
  std::set<std::string> stated{"launch", "submitted_as"};  // the latter is the controller's own
  model::ForEachJobField<model::IsInRequests>(
      [&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
        const Descriptor* message = v1::JobRequest::descriptor();
        const FieldDescriptor* found = nullptr;
        for (const std::string_view name : base::Split(field.info.request, ".")) {
          ASSERT_NE(message, nullptr) << field.info.request;
          found = message->FindFieldByName(std::string(name));
          ASSERT_NE(found, nullptr) << "live.proto has no field " << field.info.request;
          stated.insert(message == v1::JobRequest::descriptor() ? found->name() : "launch");
          message = found->message_type();
        }
        // 0 GPUs are stated, too.
        EXPECT_EQ(TypeOf(*found),
                  std::string(field.info.name == "gpus" ? "optional " : "") + TypeFor<T>::kName)
            << field.info.request;
      });
  for (int i = 0; i < v1::JobRequest::descriptor()->field_count(); ++i) {
    const std::string& name = v1::JobRequest::descriptor()->field(i)->name();
    EXPECT_TRUE(stated.contains(name)) << "no row of src/model/job_fields.h has " << name;
  }
}

v1::JobRequest Request() {
  v1::JobRequest request;
  request.set_gpus(2);
  request.mutable_launch()->add_command("train");
  return request;
}

std::string MistakeIn(const v1::JobRequest& request) {
  const Result<model::JobDraft> draft = DraftOf(request, {}, {});
  return draft.ok() ? "" : draft.error().message;
}

TEST(JobRequestTest, NumbersAndTimesHaveTheBoundsOfTheTable) {
  EXPECT_EQ(MistakeIn(Request()), "");
  const auto mistake = [](std::string_view path, auto value) {
    v1::JobRequest request = Request();
    SetInRequest(path, value, request);
    return MistakeIn(request);
  };
  EXPECT_EQ(mistake("gpus", std::int64_t{-1}), "gpus is -1; expected an integer from 0 to 6400000");
  EXPECT_EQ(mistake("batch_size", std::int64_t{0}), "");
  EXPECT_EQ(mistake("batch_size", std::int64_t{-1}),
            "batch_size is -1; expected an integer from 1 to 1000000000000");
  EXPECT_EQ(mistake("max_gpus", std::int64_t{-1}),
            "max_gpus is -1; expected an integer from 1 to 2147483647");
  EXPECT_EQ(mistake("launch.priority", std::int64_t{-7}), "");
  EXPECT_EQ(mistake("iterations", 1e16),
            "iterations is 1e+16; expected a number > 0 and <= 1000000000000000");
  EXPECT_EQ(mistake("duration_s", 0.0), "duration is 0 s; expected 1e-6 to 9000000000 s");
  EXPECT_EQ(mistake("deadline_s", 1e-7), "deadline is 1e-07 s; expected 1e-6 to 9000000000 s");
  EXPECT_EQ(mistake("model", std::string(257, 'x')),
            "the model has control characters or more than 256 bytes");
}

TEST(JobRequestTest, ABestEffortJobHasNoDeadlines) {
  v1::JobRequest request = Request();
  request.set_deadline_s(60);
  request.add_soft_deadlines()->set_after_s(60);
  request.mutable_soft_deadlines(0)->set_value(1);
  const TimePoint now = AtSeconds(100);
  const Result<model::JobDraft> draft = DraftOf(request, now, {});
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft.value().spec.deadline, AtSeconds(160));
  EXPECT_EQ(draft.value().traits.deadlines.size(), 1U);
  request.set_best_effort(true);
  const Result<model::JobDraft> best_effort = DraftOf(request, now, {});
  ASSERT_TRUE(best_effort.ok());
  EXPECT_EQ(best_effort.value().spec.deadline, std::nullopt);
  EXPECT_TRUE(best_effort.value().traits.deadlines.empty());
}

}  // namespace
}  // namespace trainyard::live
