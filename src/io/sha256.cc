// SPDX-License-Identifier: Apache-2.0
// The interface that OpenSSL would rather see replaced is the only one whose state can be saved.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "io/sha256.h"

#include <openssl/sha.h>

#include <array>

#include "base/check.h"

namespace trainyard::io {

struct Sha256::Context {
  SHA256_CTX digest{};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  CHECK(SHA256_Init(&context_->digest) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) {
  CHECK(SHA256_Update(&context_->digest, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() const {
  SHA256_CTX copy = context_->digest;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes{};
  CHECK(SHA256_Final(bytes.data(), &copy) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

void Sha256::Serialize(StateStream& state) {
  SHA256_CTX& digest = context_->digest;
  for (auto& word : digest.h) {
    state(word);
  }
  state(digest.Nl, digest.Nh);
  for (auto& word : digest.data) {  // the bytes of a block that is not complete
    state(word);
  }
  state(digest.num);
  if (digest.num >= SHA256_CBLOCK) {
    state.Fail();
    digest.num = 0;
  }
}

}  // namespace trainyard::io
