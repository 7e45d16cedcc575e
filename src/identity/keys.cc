// SPDX-License-Identifier: Apache-2.0
#include "identity/keys.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "identity/secret_file.h"
#include "io/file.h"

namespace trainyard::identity {
namespace {

using KeyHandle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using BioHandle = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using DigestHandle = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

constexpr std::size_t kSecretBytes = 32;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

BioHandle Reading(std::string_view text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free_all};
}

BioHandle Writing() { return {BIO_new(BIO_s_mem()), &BIO_free_all}; }

std::string Written(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

bool IsEd25519(const EVP_PKEY* key) {
  return key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
}

std::string RawPublicKey(const EVP_PKEY* key) {
  std::string bytes(kPublicKeyBytes, '\0');
  std::size_t size = bytes.size();
  CHECK(EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(bytes.data()), &size) ==
        1);
  return bytes;
}

int ValueOf(char digit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t at = kDigits.find(digit);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

struct KeyPair::Key {
  KeyHandle handle;
};

KeyPair KeyPair::Make() {
  KeyHandle handle(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), &EVP_PKEY_free);
  CHECK(handle != nullptr);
  return KeyPair(std::make_shared<const Key>(Key{std::move(handle)}));
}

Result<KeyPair> KeyPair::OpenOrMake(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) {
    KeyPair made = Make();
    RETURN_IF_ERROR(WriteSecretFile(path, made.PrivatePem()));
    return made;
  }
  ASSIGN_OR_RETURN(std::string pem, ReadSecretFile(path));
  const BioHandle bio = Reading(pem);
  // The empty password keeps OpenSSL from asking for one at the terminal.
  std::string password;
  KeyHandle handle(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, password.data()),
                   &EVP_PKEY_free);
  OPENSSL_cleanse(pem.data(), pem.size());
  if (!IsEd25519(handle.get())) {
    return BadInput(fmt::format("{}: holds no private key; expected one of Ed25519 in PEM", path));
  }
  return KeyPair(std::make_shared<const Key>(Key{std::move(handle)}));
}

std::string KeyPair::Sign(std::string_view bytes) const {
  const DigestHandle context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_->handle.get()) == 1);
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = signature.size();
  CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       Bytes(bytes), bytes.size()) == 1);
  return signature;
}

std::string KeyPair::public_key() const { return RawPublicKey(key_->handle.get()); }

std::string KeyPair::PrivatePem() const {
  const BioHandle bio = Writing();
  CHECK(PEM_write_bio_PrivateKey(bio.get(), key_->handle.get(), nullptr, nullptr, 0, nullptr,
                                 nullptr) == 1);
  return Written(bio.get());
}

bool Verify(std::string_view public_key, std::string_view bytes, std::string_view signature) {
  if (public_key.size() != kPublicKeyBytes || signature.size() != kSignatureBytes) {
    return false;
  }
  const KeyHandle key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(public_key), public_key.size()),
      &EVP_PKEY_free);
  const DigestHandle context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return key != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(bytes),
                          bytes.size()) == 1;
}

std::string PublicKeyPem(std::string_view public_key) {
  const KeyHandle key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(public_key), public_key.size()),
      &EVP_PKEY_free);
  const BioHandle bio = Writing();
  CHECK(key != nullptr && PEM_write_bio_PUBKEY(bio.get(), key.get()) == 1);
  return Written(bio.get());
}

Result<std::string> PublicKeyOf(std::string_view pem, const std::string& path) {
  const BioHandle bio = Reading(pem);
  const KeyHandle key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  if (!IsEd25519(key.get())) {
    return BadInput(fmt::format("{}: holds no public key; expected one of Ed25519 in PEM", path));
  }
  return RawPublicKey(key.get());
}

std::string RandomBytes(std::size_t count) {
  std::string bytes(count, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += kDigits[value >> 4U];
    hex += kDigits[value & 15U];
  }
  return hex;
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = ValueOf(hex[i]);
    const int low = ValueOf(hex[i + 1]);
    if (high < 0 || low < 0) {
      return {};
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return hex.size() % 2 == 0 ? bytes : std::string();
}

std::string NewSecret() { return ToHex(RandomBytes(kSecretBytes)); }

std::string HashOfSecret(std::string_view secret) { return io::Sha256Hex(secret); }

bool SameBytes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace trainyard::identity
