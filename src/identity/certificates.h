// SPDX-License-Identifier: Apache-2.0
// The cluster's own certificate authority, and the certificates that it signs (X.509, ECDSA P-256).
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::identity {

// The name in the controller's certificate, whatever its address is.
inline constexpr char kControllerName[] = "controller.trainyard";
// Before the node's name in its certificate.
inline constexpr std::string_view kNodePrefix = "node:";
inline constexpr std::size_t kMostNodeName = 59;  // bytes, so that a certificate can hold it

// Both in PEM.
struct CertifiedKey {
  std::string key;
  std::string certificate;
};

enum class CertifiedAs : unsigned char { kController, kNode };

// What is certified of a key, and for how long.
struct CertificateTerms {
  std::string name;  // kControllerName, or kNodePrefix and the node's
  CertifiedAs as{};
  double now = 0;     // seconds since 1970
  double life_s = 0;  // a minute before now it begins, for clocks that are behind
};

// A new private key in PEM.
[[nodiscard]] std::string NewCertificateKey();
// An authority that signs itself, for twenty years.
[[nodiscard]] CertifiedKey NewAuthority(const std::string& cluster, double now);
// The request of a key's owner that it be certified; PEM. Error: the text is no key.
[[nodiscard]] Result<std::string> RequestFor(const std::string& key);
// The certificate; the name is the terms', whatever the request says. Errors: no request in PEM
// that its own key has signed; a name that is too long.
[[nodiscard]] Result<std::string> Certify(const CertifiedKey& authority, const std::string& request,
                                          const CertificateTerms& terms);

struct CertificateFacts {
  std::string name;
  std::string serial;  // hex
  double begins = 0;   // seconds since 1970
  double ends = 0;
};
// Of the first certificate in the text. Error: there is none.
[[nodiscard]] Result<CertificateFacts> FactsOf(std::string_view certificate);

// The hash by which an authority is known before it is trusted; empty: no certificate.
[[nodiscard]] std::string Fingerprint(std::string_view certificate);

// Asks a server for its chain of certificates and gives the last one, if that has the fingerprint.
// Errors: nobody answers there by TLS; another authority does.
[[nodiscard]] Result<std::string> FetchAuthority(const std::string& address,
                                                 std::string_view fingerprint);

}  // namespace trainyard::identity
