// SPDX-License-Identifier: Apache-2.0
#include "daemon/credentials.h"

#include <fmt/format.h>
#include <pwd.h>

#include <array>
#include <chrono>
#include <optional>

#include "base/try.h"
#include "identity/keys.h"
#include "identity/secret_file.h"
#include "launcher/credential.h"
#include "supervisor/attach/attach_digest.h"
#include "supervisor/launch/launch_digest.h"

namespace trainyard::daemon {
namespace {

std::optional<uid_t> UidOf(const std::string& user) {
  std::array<char, 16384> space{};
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r(user.c_str(), &entry, space.data(), space.size(), &found);
  return found == nullptr ? std::nullopt : std::optional(entry.pw_uid);
}

std::int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Empty: the owner is nobody whom a launcher starts.
std::string Signed(const identity::KeyPair& key, launcher::Credential credential,
                   const v1::Caller& owner) {
  // Root is nobody whom a launcher starts; a user who has come by a network has no number.
  const std::optional<uid_t> uid = owner.uid() > 0 ? owner.uid() : UidOf(owner.user());
  if (!uid.has_value() || *uid == 0) {
    return {};
  }
  credential.user = owner.user();
  credential.uid = *uid;
  credential.expires = UnixSeconds() + launcher::kCredentialSeconds;
  const std::string text = credential.ToText();
  return text.empty() ? text : launcher::WithSignature(text, key.Sign(text));
}

}  // namespace

Result<SignCredentials> MakeCredentials(const std::string& state, std::uint64_t epoch) {
  ASSIGN_OR_RETURN(const identity::KeyPair key,
                   identity::KeyPair::OpenOrMake(state + "/credential.key"));
  RETURN_IF_ERROR(identity::WritePublicFile(state + "/credential.pub",
                                            identity::PublicKeyPem(key.public_key())));
  return SignCredentials{
      .start =
          [key, epoch](const v1::StartAttempt& start, const std::string& node) {
            return Signed(key,
                          {.job = start.id().job(),
                           .attempt = start.id().attempt(),
                           .node = node,
                           .gpus = {start.gpus().begin(), start.gpus().end()},
                           .epoch = epoch,
                           .launch = supervisor::LaunchDigest(start.launch())},
                          start.launch().owner());
          },
      .attach =
          [key, epoch](const v1::AttachOrder& order, const v1::Caller& owner,
                       const std::string& node) {
            return Signed(key,
                          {.job = order.id().job(),
                           .attempt = order.id().attempt(),
                           .node = node,
                           .epoch = epoch,
                           .launch = supervisor::AttachDigest(order.request())},
                          owner);
          },
      .secret =
          [key](const v1::AttemptId& id) {
            return key.Sign(fmt::format("trainyard attempt {} {}\n", id.job(), id.attempt()));
          }};
}

}  // namespace trainyard::daemon
