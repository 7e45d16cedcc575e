// SPDX-License-Identifier: Apache-2.0
#include "rpc/address.h"

#include <gtest/gtest.h>

#include <utility>

namespace trainyard::rpc {
namespace {

std::string Where(std::string_view text) {
  const Result<std::string> address = ControllerAddress("--controller", text);
  return address.ok() ? address.value() : address.error().message;
}

std::string Listens(std::string_view text) {
  const Status status = CheckListenAddress("--listen", text);
  return status.ok() ? "" : status.error().message;
}

TEST(AddressTest, APortThatIsNotGivenIsTheControllers) {
  EXPECT_EQ(Where("gpu01"), "gpu01:7077");
  EXPECT_EQ(Where("10.0.0.1:80"), "10.0.0.1:80");
  EXPECT_EQ(Where("[::1]"), "[::1]:7077");
  EXPECT_EQ(Where("[::1]:65535"), "[::1]:65535");
}

TEST(AddressTest, WhereNobodyCanBeReachedIsRefused) {
  for (const char* port : {"0", "65536", "99999", "-1", "seven", "", "1e3"}) {
    EXPECT_EQ(Where(std::string("gpu01:") + port),
              std::string("--controller is 'gpu01:") + port + "': '" + port +
                  "' is no port; expected a number from 1 to 65535");
  }
  EXPECT_EQ(Where("::1"),
            "--controller is '::1': an IPv6 address needs brackets; expected it as in [::1]:7077");
  for (const char* text : {"", ":7077", "[]:7077", "[::1", "[::1]x", "a b:7077"}) {
    EXPECT_EQ(Where(text), std::string("--controller is '") + text +
                               "': it begins with no host; expected HOST:PORT")
        << text;
  }
}

TEST(AddressTest, AControllerMayTakeAnyFreePort) {
  EXPECT_EQ(Listens("127.0.0.1:0"), "");
  EXPECT_EQ(Listens("[::]:7077"), "");
  EXPECT_EQ(Listens("127.0.0.1"), "--listen is '127.0.0.1': no port; expected HOST:PORT");
  EXPECT_EQ(Listens("127.0.0.1:70000"),
            "--listen is '127.0.0.1:70000': '70000' is no port; expected a number from 0 to 65535");
}

TEST(AddressTest, TheMachineKnowsItsOwnAddresses) {
  EXPECT_TRUE(IsThisMachine("127.0.0.1:7077"));
  EXPECT_TRUE(IsThisMachine("127.3.2.1:7077"));
  EXPECT_TRUE(IsThisMachine("localhost:7077"));
  EXPECT_FALSE(IsThisMachine("203.0.113.7:7077"));  // of no machine
  EXPECT_FALSE(IsThisMachine("nobody.invalid:7077"));
}

}  // namespace
}  // namespace trainyard::rpc
