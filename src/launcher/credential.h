// SPDX-License-Identifier: Apache-2.0
// What a controller signs so that a node starts one attempt as one user: a text of fixed lines, and
// the signature of it.
//
//   trainyard credential 1
//   job 7
//   attempt 2
//   user anna
//   uid 1001
//   node n1
//   gpus 0,1
//   epoch 5
//   expires 1790000000
//   launch 9f86d081...                   SHA-256 of what is to run (supervisor/launch_digest.h)
//   signature 3a5f...                    Ed25519 over all the lines before
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::launcher {

inline constexpr std::size_t kMaxCredentialBytes = 4096;
// The launcher's exit status where it starts nothing for this user: root, a user of the system's,
// or one that the node does not know.
inline constexpr int kRefusesUser = 77;
// From being made to its end: messages are on their way for seconds, and clocks differ.
inline constexpr std::int64_t kCredentialSeconds = 300;

struct Credential {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  std::string user;
  std::uint32_t uid = 0;
  std::string node;
  std::vector<int> gpus;  // of the node
  std::uint64_t epoch = 0;
  std::int64_t expires = 0;  // seconds since 1970
  std::string launch;

  // The lines before the signature. Empty: a name that would break a line.
  [[nodiscard]] std::string ToText() const;
};

// Both of a credential as it travels: "LINES" "signature HEX\n".
struct SignedCredential {
  Credential credential;
  std::string text;       // what is signed
  std::string signature;  // 64 bytes
};

[[nodiscard]] std::string WithSignature(const std::string& text, std::string_view signature);
// Only what ToText writes is read: one credential has one text. Error: what is wrong with it. The
// signature is not checked.
[[nodiscard]] Result<SignedCredential> ReadCredential(std::string_view bytes);

}  // namespace trainyard::launcher
