// SPDX-License-Identifier: Apache-2.0
// A controller's word that a node may start an attempt as a user of the machine, for its launcher.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

// What LiveOptions::credential, attach_credential and secret are: signed by the key in
// STATE/credential.key, which is made if need be, with the public one beside it
// (STATE/credential.pub) for the launchers' /etc/trainyard.
struct SignCredentials {
  std::function<std::string(const v1::StartAttempt& start, const std::string& node)> start;
  std::function<std::string(const v1::AttachOrder& order, const v1::Caller& owner,
                            const std::string& node)>
      attach;
  // Of an attempt (StartAttempt::secret): who has not the key cannot know it.
  std::function<std::string(const v1::AttemptId& id)> secret;
};
[[nodiscard]] Result<SignCredentials> MakeCredentials(const std::string& state,
                                                      std::uint64_t epoch);

}  // namespace trainyard::daemon
