// SPDX-License-Identifier: Apache-2.0
#include "service/calls.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "service/call_error.h"

namespace trainyard::service {
namespace {

// The members of the oneof, by their names.
std::set<std::string> MembersOf(const google::protobuf::Descriptor& message) {
  std::set<std::string> names;
  const google::protobuf::OneofDescriptor& kind = *message.FindOneofByName("kind");
  for (int i = 0; i < kind.field_count(); ++i) {
    names.insert(kind.field(i)->name());
  }
  return names;
}

TEST(CallsTest, EveryMessageOfACallHasARow) {
  std::set<std::string> rows;
#define TRAINYARD_CALL(Name, field, family) rows.insert(#field);
  TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
  EXPECT_EQ(rows, MembersOf(*v1::ClientRequest::descriptor()));
  rows.insert("error");
  EXPECT_EQ(rows, MembersOf(*v1::ClientReply::descriptor()));
}

// A selection says of a call that it changes jobs, and only of such a call.
TEST(CallsTest, CallsOnSelectionsChangeJobs) {
#define TRAINYARD_CALL(Name, field, family)                                                \
  {                                                                                        \
    v1::ClientRequest request;                                                             \
    request.mutable_##field();                                                             \
    bool selects = false;                                                                  \
    VisitRequest(request, [&](const auto& part) {                                          \
      selects = part.GetDescriptor()->FindFieldByName("selection") != nullptr;             \
    });                                                                                    \
    EXPECT_EQ(selects, FamilyOf(request.kind_case()) == CallFamily::kJobChange) << #field; \
    v1::ClientReply reply;                                                                 \
    bool changed = false;                                                                  \
    MakeReply(request.kind_case(), reply, [&](auto& part) {                                \
      changed = part.GetDescriptor()->FindFieldByName("changed") != nullptr;               \
    });                                                                                    \
    EXPECT_EQ(changed, selects) << #field;                                                 \
    EXPECT_EQ(static_cast<int>(reply.kind_case()) != v1::ClientReply::KIND_NOT_SET, true); \
  }
  TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
  EXPECT_EQ(FamilyOf(v1::ClientRequest::KIND_NOT_SET), CallFamily::kNone);
}

TEST(CallErrorTest, CodesArriveAsTheyWereSent) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kAlreadyExists,
        ErrorCode::kPermissionDenied, ErrorCode::kUnauthenticated, ErrorCode::kFailedPrecondition,
        ErrorCode::kResourceExhausted, ErrorCode::kUnavailable}) {
    EXPECT_EQ(CodeOf(NumberOf(code)), code);
  }
  EXPECT_EQ(CodeOf(NumberOf(ErrorCode::kFailed)), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(2), ErrorCode::kFailed) << "gRPC's UNKNOWN";
  const v1::CallError message = MessageOf({ErrorCode::kNotFound, "there is no job 7"});
  EXPECT_EQ(message.code(), 5) << "gRPC's NOT_FOUND";
  EXPECT_EQ(message.message(), "there is no job 7");
}

}  // namespace
}  // namespace trainyard::service
