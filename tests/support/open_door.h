// SPDX-License-Identifier: Apache-2.0
// The local socket of a pretended controller that asks nobody who they are. For tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "identity/door.h"
#include "trainyard/identity.pb.h"

namespace trainyard {

// Of the one that listens at `port`; clients send it nothing else.
inline std::unique_ptr<identity::Door> OpenDoorOf(int port) {
  auto door = identity::Door::Open(identity::DoorName(port), [](uid_t /*user*/) {
    v1::LocalAccess access;
    access.set_token("any");
    return access.SerializeAsString();
  });
  EXPECT_TRUE(door.ok());
  return std::move(door).value();
}

}  // namespace trainyard
