// SPDX-License-Identifier: Apache-2.0
#include "daemon/devices.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace trainyard::daemon {
namespace {

TEST(DevicesTest, DeclaredDevicesAreTaken) {
  EXPECT_EQ(ParseDevices("8").value().gpus, 8);
  EXPECT_EQ(ParseDevices("4:v100").value().gpus, 4);
  EXPECT_EQ(ParseDevices("4:v100").value().type, "v100");
  for (const char* wrong : {"0", "65", "-1", "1.5", "many", "", ":v100"}) {
    EXPECT_FALSE(ParseDevices(wrong).ok()) << wrong;
  }
}

// A library of our own in NVML's place: two devices called "Pretended GPU".
TEST(DevicesTest, DevicesAreCountedByTheManagementLibrary) {
  const Result<Devices> devices = FindDevices(PRETENDED_NVML);
  ASSERT_TRUE(devices.ok()) << devices.error().message;
  EXPECT_EQ(devices.value().gpus, 2);
  EXPECT_EQ(devices.value().type, "Pretended GPU");
}

TEST(DevicesTest, TheDriverTellsOfFaultsThatAreNew) {
  setenv("PRETENDED_ERRORS", "2", 1);  // of long ago
  const GpuHealth health(PRETENDED_NVML);
  EXPECT_EQ(health.FaultOf(1), "");
  setenv("PRETENDED_ERRORS", "3", 1);
  EXPECT_EQ(health.FaultOf(1), "GPU 1: uncorrected memory errors");
  setenv("PRETENDED_ERRORS", "lost", 1);
  EXPECT_EQ(health.FaultOf(0), "GPU 0: the driver has lost it");
  EXPECT_EQ(health.FaultOf(2), "");  // there is no such GPU
  unsetenv("PRETENDED_ERRORS");
  EXPECT_EQ(GpuHealth("libnothing-of-the-kind.so").FaultOf(0), "");
}

TEST(DevicesTest, WithoutTheLibraryTheErrorSaysWhatToDo) {
  const Result<Devices> devices = FindDevices("libnothing-of-the-kind.so");
  ASSERT_FALSE(devices.ok());
  EXPECT_NE(devices.error().message.find("expected --gpus N"), std::string::npos);
}

TEST(DevicesTest, AnInterfaceHasAnAddress) {
  EXPECT_EQ(AddressOf("lo").value(), "127.0.0.1");
  const Result<std::string> missing = AddressOf("nothing0");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("lo"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::daemon
