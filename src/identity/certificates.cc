// SPDX-License-Identifier: Apache-2.0
#include "identity/certificates.h"

#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include "base/check.h"
#include "base/try.h"
#include "identity/keys.h"
#include "io/file.h"

namespace trainyard::identity {
namespace {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using X509Handle = std::unique_ptr<X509, Free<X509_free>>;
using RequestHandle = std::unique_ptr<X509_REQ, Free<X509_REQ_free>>;

constexpr double kAuthorityLife = 20 * 365.25 * 86400;
constexpr double kCertificateClockSlack = 60;
constexpr int kSerialBytes = 16;

Bio ReadingFrom(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextIn(const Bio& bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

Bio NewText() { return Bio(BIO_new(BIO_s_mem())); }

PrivateKey ReadKey(const std::string& pem) {
  std::string password;  // keeps OpenSSL from asking for one
  return PrivateKey(
      PEM_read_bio_PrivateKey(ReadingFrom(pem).get(), nullptr, nullptr, password.data()));
}

X509Handle ReadCertificate(std::string_view pem) {
  return X509Handle(PEM_read_bio_X509(ReadingFrom(pem).get(), nullptr, nullptr, nullptr));
}

std::string PemOf(X509* certificate) {
  const Bio bio = NewText();
  CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return TextIn(bio);
}

bool SetName(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

void Extend(X509* certificate, X509* issuer, int what, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, what, value);
  CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// A certificate with a serial number and a time, nothing else yet.
X509Handle NewCertificate(double begins, double ends) {
  X509Handle made(X509_new());
  CHECK(X509_set_version(made.get(), X509_VERSION_3) == 1);
  std::string serial = RandomBytes(kSerialBytes);
  serial.front() = static_cast<char>(serial.front() & 0x7f);  // no negative number
  BIGNUM* const number = BN_bin2bn(reinterpret_cast<const unsigned char*>(serial.data()),
                                   static_cast<int>(serial.size()), nullptr);
  CHECK(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made.get())) != nullptr);
  BN_free(number);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), static_cast<std::time_t>(begins));
  ASN1_TIME_set(X509_getm_notAfter(made.get()), static_cast<std::time_t>(ends));
  return made;
}

double UnixOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<double>(timegm(&parts)) : 0;
}

}  // namespace

std::string NewCertificateKey() {
  const PrivateKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const Bio bio = NewText();
  CHECK(key != nullptr &&
        PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return TextIn(bio);
}

CertifiedKey NewAuthority(const std::string& cluster, double now) {
  CertifiedKey made{.key = NewCertificateKey(), .certificate = {}};
  const PrivateKey key = ReadKey(made.key);
  const X509Handle certificate = NewCertificate(now - kCertificateClockSlack, now + kAuthorityLife);
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  CHECK(SetName(name, "trainyard cluster " + cluster));
  CHECK(X509_set_issuer_name(certificate.get(), name) == 1);
  CHECK(X509_set_pubkey(certificate.get(), key.get()) == 1);
  Extend(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  Extend(certificate.get(), certificate.get(), NID_key_usage, "critical,keyCertSign");
  Extend(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash");
  CHECK(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  made.certificate = PemOf(certificate.get());
  return made;
}

Result<std::string> RequestFor(const std::string& key_pem) {
  const PrivateKey key = ReadKey(key_pem);
  if (key == nullptr) {
    return BadInput("the key of the certificate cannot be read; expected a private key in PEM");
  }
  const RequestHandle request(X509_REQ_new());
  CHECK(X509_REQ_set_pubkey(request.get(), key.get()) == 1);
  CHECK(X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0);
  const Bio bio = NewText();
  CHECK(PEM_write_bio_X509_REQ(bio.get(), request.get()) == 1);
  return TextIn(bio);
}

Result<std::string> Certify(const CertifiedKey& authority, const std::string& request_pem,
                            const CertificateTerms& terms) {
  const RequestHandle request(
      PEM_read_bio_X509_REQ(ReadingFrom(request_pem).get(), nullptr, nullptr, nullptr));
  EVP_PKEY* const key = request == nullptr ? nullptr : X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1) {
    return BadInput(
        "the request for a certificate is none; expected one in PEM, signed by its key");
  }
  const X509Handle issuer = ReadCertificate(authority.certificate);
  const PrivateKey issuer_key = ReadKey(authority.key);
  if (issuer == nullptr || issuer_key == nullptr) {
    return BadInput("the cluster's certificate authority cannot be read; expected PEM");
  }
  const X509Handle made =
      NewCertificate(terms.now - kCertificateClockSlack, terms.now + terms.life_s);
  if (!SetName(X509_get_subject_name(made.get()), terms.name)) {
    return InvalidArgument(
        fmt::format("'{}' is no name for a certificate; expected at most {} "
                    "bytes of UTF-8 for a node",
                    terms.name, kMostNodeName));
  }
  CHECK(X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get())) == 1);
  CHECK(X509_set_pubkey(made.get(), key) == 1);
  const bool is_controller = terms.as == CertifiedAs::kController;
  Extend(made.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  Extend(made.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  Extend(made.get(), issuer.get(), NID_ext_key_usage, is_controller ? "serverAuth" : "clientAuth");
  if (is_controller) {
    Extend(made.get(), issuer.get(), NID_subject_alt_name,
           (std::string("DNS:") + kControllerName).c_str());
  }
  CHECK(X509_sign(made.get(), issuer_key.get(), EVP_sha256()) > 0);
  return PemOf(made.get());
}

Result<CertificateFacts> FactsOf(std::string_view pem) {
  const X509Handle certificate = ReadCertificate(pem);
  if (certificate == nullptr) {
    return BadInput("there is no certificate; expected one in PEM");
  }
  CertificateFacts facts;
  std::array<char, 256> name{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()),
                                             NID_commonName, name.data(), name.size());
  facts.name.assign(name.data(), static_cast<std::size_t>(std::max(size, 0)));
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr);
  char* const hex = BN_bn2hex(number);
  facts.serial = hex;
  OPENSSL_free(hex);
  BN_free(number);
  facts.begins = UnixOf(X509_get0_notBefore(certificate.get()));
  facts.ends = UnixOf(X509_get0_notAfter(certificate.get()));
  return facts;
}

std::string Fingerprint(std::string_view pem) {
  const X509Handle certificate = ReadCertificate(pem);
  return certificate == nullptr ? std::string() : io::Sha256Hex(PemOf(certificate.get()));
}

Result<std::string> FetchAuthority(const std::string& address, std::string_view fingerprint) {
  const std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  // Nothing is believed of the server but what has the fingerprint, and nothing is told it.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kHttp2.data(), kHttp2.size());
  const Bio bio(BIO_new_ssl_connect(context.get()));
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  SSL_set_tlsext_host_name(ssl, kControllerName);
  BIO_set_conn_hostname(bio.get(), address.c_str());
  if (BIO_do_connect(bio.get()) <= 0 || BIO_do_handshake(bio.get()) <= 0) {
    return Failed(fmt::format(
        "no controller answers by TLS at {}; expected the address of one that listens there",
        address));
  }
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    std::string pem = PemOf(sk_X509_value(chain, i));
    if (Fingerprint(pem) == fingerprint) {
      return pem;
    }
  }
  return Failed(
      fmt::format("what answers at {} has not the certificate authority that the token "
                  "names; expected the controller that has made the token",
                  address));
}

}  // namespace trainyard::identity
