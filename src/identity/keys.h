// SPDX-License-Identifier: Apache-2.0
// Ed25519 key pairs, signatures and random bytes, all by OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::identity {

inline constexpr std::size_t kPublicKeyBytes = 32;
inline constexpr std::size_t kSignatureBytes = 64;

// A private key with its public one. Cheap to copy.
class KeyPair {
 public:
  // A new one.
  [[nodiscard]] static KeyPair Make();
  // That of the file (PEM, mode 0600), which is made with a new one where there is none. Errors:
  // those of ReadSecretFile; it holds no Ed25519 key.
  [[nodiscard]] static Result<KeyPair> OpenOrMake(const std::string& path);

  // 64 bytes.
  [[nodiscard]] std::string Sign(std::string_view bytes) const;
  // 32 bytes.
  [[nodiscard]] std::string public_key() const;
  // As it lies in the file.
  [[nodiscard]] std::string PrivatePem() const;

 private:
  struct Key;
  explicit KeyPair(std::shared_ptr<const Key> key) : key_(std::move(key)) {}
  std::shared_ptr<const Key> key_;
};

// Whether the owner of the public key (32 bytes) has signed exactly these bytes.
[[nodiscard]] bool Verify(std::string_view public_key, std::string_view bytes,
                          std::string_view signature);

// A public key as PEM, and back. Error: the text holds no Ed25519 key; `path` is named in it.
[[nodiscard]] std::string PublicKeyPem(std::string_view public_key);
[[nodiscard]] Result<std::string> PublicKeyOf(std::string_view pem, const std::string& path);

// From the generator of OpenSSL, which the kernel seeds.
[[nodiscard]] std::string RandomBytes(std::size_t count);

// Lower-case hex, and back; nothing but pairs of hex digits: empty.
[[nodiscard]] std::string ToHex(std::string_view bytes);
[[nodiscard]] std::string FromHex(std::string_view hex);

// 64 hex digits that nobody guesses: what a token is that is shown once and kept as its hash.
[[nodiscard]] std::string NewSecret();
// What is kept of a secret. A plain hash is enough for one of 256 random bits.
[[nodiscard]] std::string HashOfSecret(std::string_view secret);

// In a time that does not depend on where they differ.
[[nodiscard]] bool SameBytes(std::string_view a, std::string_view b);

}  // namespace trainyard::identity
