// SPDX-License-Identifier: Apache-2.0
#include "cli/live/attach/client_attach.h"

#include <gtest/gtest.h>

#include <deque>

namespace trainyard::cli {
namespace {

// Gives the answers one after the other.
class PreparedClient final : public rpc::ClusterClient {
 public:
  explicit PreparedClient(std::deque<v1::AttachReply> replies) : replies_(std::move(replies)) {}
  Result<v1::ClientReply> Call(const v1::ClientRequest& request, Duration /*timeout*/,
                               Duration /*patience*/) override {
    asked_from.push_back(request.attach().offset());
    if (replies_.empty()) {
      return Failed("there are no more answers");
    }
    v1::ClientReply reply;
    *reply.mutable_attach() = replies_.front();
    replies_.pop_front();
    return reply;
  }

  std::vector<std::uint64_t> asked_from;

 private:
  std::deque<v1::AttachReply> replies_;
};

v1::AttachReply Output(std::uint64_t offset, const std::string& text) {
  v1::AttachReply reply;
  reply.set_offset(offset);
  reply.set_output(text);
  return reply;
}

TEST(SessionOutputTest, WhatHasBeenShownStaysShownWhenTheSessionIsGone) {
  v1::AttachReply gone;
  gone.set_gone(true);
  PreparedClient client({Output(0, "hello"), Output(5, " you"), gone});
  SessionOutput output(client, {});
  testing::internal::CaptureStdout();
  EXPECT_TRUE(output.Copy().ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello you");
  EXPECT_EQ(output.offset(), 9U) << "the rest of the log begins there";
  EXPECT_EQ(client.asked_from, (std::vector<std::uint64_t>{0, 5, 9}));
  EXPECT_FALSE(output.exit_code());
}

TEST(SessionOutputTest, TheLastAnswerOfASessionMayHaveOutput) {
  v1::AttachReply last = Output(5, "!");
  last.set_exit_code(3);
  PreparedClient client({Output(0, "hello"), last});
  SessionOutput output(client, {});
  testing::internal::CaptureStdout();
  EXPECT_TRUE(output.Copy().ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello!");
  EXPECT_EQ(output.offset(), 6U);
  EXPECT_EQ(output.exit_code(), 3);
}

}  // namespace
}  // namespace trainyard::cli
