// SPDX-License-Identifier: Apache-2.0
// The interface that OpenSSL would rather see replaced is the only one whose state can be saved.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "io/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>

#include "base/check.h"

namespace trainyard::io {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

std::string HexOf(const Digest& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

}  // namespace

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
  Digest bytes{};
  CHECK(SHA256_Final(bytes.data(), &copy) == 1);
  return HexOf(bytes);
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

std::string HmacSha256(std::string_view key, std::string_view text) {
  Digest bytes{};
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(),
             nullptr) != nullptr);
  return HexOf(bytes);
}

}  // namespace trainyard::io
