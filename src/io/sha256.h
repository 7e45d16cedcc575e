// SPDX-License-Identifier: Apache-2.0
// SHA-256 over a stream of bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainyard/state.h"

namespace trainyard::io {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::string_view bytes);
  // The digest of all bytes so far in lower-case hex; more may follow.
  [[nodiscard]] std::string Hex() const;
  // To go on with the same stream another time.
  void Serialize(StateStream& state);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// The keyed digest of RFC 2104 with SHA-256, in lower-case hex.
[[nodiscard]] std::string HmacSha256(std::string_view key, std::string_view text);

}  // namespace trainyard::io
