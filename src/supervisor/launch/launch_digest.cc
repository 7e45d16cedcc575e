// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_digest.h"

#include <string_view>

#include "io/sha256.h"

namespace trainyard::supervisor {

std::string LaunchDigest(const v1::LaunchSpec& launch) {
  io::Sha256 digest;
  // With its length in front: no two lists of texts look alike.
  const auto add = [&digest](std::string_view text) {
    digest.Update(std::to_string(text.size()) + ":");
    digest.Update(text);
  };
  const auto add_count = [&add](int count) { add(std::to_string(count)); };
  add_count(launch.command_size());
  for (const std::string& word : launch.command()) {
    add(word);
  }
  add(launch.working_directory());
  add_count(launch.environment_size());
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    add(variable.name());
    add(variable.value());
  }
  add_count(launch.workers());
  add_count(launch.launcher());
  add(launch.venv());
  add_count(launch.container().mounts_size());
  for (const std::string& mount : launch.container().mounts()) {
    add(mount);
  }
  add(launch.container().image());
  add(launch.container().workdir());
  add(launch.container().name());
  if (const v1::LaunchSpec::Batch& batch = launch.batch(); !batch.script().empty()) {
    add("script");
    add(batch.script());
    add_count(batch.notice());
    add_count(batch.notice_to_script() ? 1 : 0);
  }
  if (launch.input() != v1::LaunchSpec::NOTHING) {
    add("input");
    add_count(launch.input());
  }
  if (launch.workers_per_node() != 0) {
    add("workers per node");
    add_count(launch.workers_per_node());
  }
  return digest.Hex();
}

}  // namespace trainyard::supervisor
