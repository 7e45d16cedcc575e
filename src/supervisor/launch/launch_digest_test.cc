// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace trainyard::supervisor {
namespace {

v1::LaunchSpec Example() {
  v1::LaunchSpec launch;
  launch.add_command("python3");
  launch.add_command("train.py");
  launch.set_working_directory("anna");
  v1::EnvironmentVariable& variable = *launch.add_environment();
  variable.set_name("A");
  variable.set_value("1");
  return launch;
}

TEST(LaunchDigestTest, EverythingThatDecidesWhatRunsChangesIt) {
  const std::vector<std::function<void(v1::LaunchSpec&)>> changes{
      [](v1::LaunchSpec&) {},
      [](v1::LaunchSpec& l) { l.add_command("x"); },
      [](v1::LaunchSpec& l) { l.add_command(""); },
      [](v1::LaunchSpec& l) { *l.mutable_command(0) = "python3train.py"; },
      [](v1::LaunchSpec& l) { l.mutable_command()->SwapElements(0, 1); },
      [](v1::LaunchSpec& l) { l.set_working_directory("/"); },
      [](v1::LaunchSpec& l) { l.mutable_environment(0)->set_name("LD_PRELOAD"); },
      [](v1::LaunchSpec& l) { l.mutable_environment(0)->set_value("2"); },
      [](v1::LaunchSpec& l) { l.add_environment(); },
      [](v1::LaunchSpec& l) { l.clear_environment(); },
      [](v1::LaunchSpec& l) { l.set_workers(v1::LaunchSpec::PER_NODE); },
      [](v1::LaunchSpec& l) { l.set_workers_per_node(2); },
      [](v1::LaunchSpec& l) { l.set_launcher(v1::LaunchSpec::MPI); },
      [](v1::LaunchSpec& l) { l.set_venv("/venv"); },
      [](v1::LaunchSpec& l) { l.mutable_container()->set_image("image"); },
      [](v1::LaunchSpec& l) { l.mutable_container()->set_name("image"); },
      [](v1::LaunchSpec& l) { l.mutable_container()->set_workdir("image"); },
      [](v1::LaunchSpec& l) { l.mutable_container()->add_mounts("image"); }};
  std::set<std::string> digests;
  for (const auto& change : changes) {
    v1::LaunchSpec launch = Example();
    change(launch);
    digests.insert(LaunchDigest(launch));
  }
  EXPECT_EQ(digests.size(), changes.size());
}

TEST(LaunchDigestTest, ItIsTheSameAfterTheWire) {
  v1::LaunchSpec sent;
  ASSERT_TRUE(sent.ParseFromString(Example().SerializeAsString()));
  EXPECT_EQ(LaunchDigest(sent), LaunchDigest(Example()));
}

}  // namespace
}  // namespace trainyard::supervisor
