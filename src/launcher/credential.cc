// SPDX-License-Identifier: Apache-2.0
#include "launcher/credential.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace trainyard::launcher {
namespace {

constexpr std::string_view kFirstLine = "trainyard credential 1\n";
constexpr std::string_view kSignature = "signature ";
constexpr std::size_t kSignatureBytes = 64;
constexpr int kHex = 16;

bool IsName(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    const char* const begin = hex.data() + i;
    if (std::from_chars(begin, begin + 2, byte, kHex).ptr != begin + 2) {
      return {};
    }
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::vector<int> NumbersIn(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream in(text);
  for (std::string one; text != "-" && std::getline(in, one, ',');) {
    int number = 0;
    std::from_chars(one.data(), one.data() + one.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

// As far as it can be read; what was not as ToText writes it shows by writing it again.
Credential ReadLines(const std::string& text) {
  Credential read;
  std::istringstream in(text);
  std::string name;
  std::string gpus;
  in >> name >> name >> name;  // the first line
  in >> name >> read.job >> name >> read.attempt >> name >> read.user >> name >> read.uid;
  in >> name >> read.node >> name >> gpus >> name >> read.epoch >> name >> read.expires;
  in >> name >> read.launch;
  read.gpus = NumbersIn(gpus);
  return read;
}

}  // namespace

std::string Credential::ToText() const {
  if (!IsName(user) || !IsName(node) || !IsName(launch)) {
    return {};
  }
  return fmt::format(
      "{}job {}\nattempt {}\nuser {}\nuid {}\nnode {}\ngpus {}\nepoch {}\nexpires {}\nlaunch {}\n",
      kFirstLine, job, attempt, user, uid, node,
      gpus.empty() ? std::string("-") : fmt::format("{}", fmt::join(gpus, ",")), epoch, expires,
      launch);
}

std::string WithSignature(const std::string& text, std::string_view signature) {
  std::string hex;
  for (const char byte : signature) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return fmt::format("{}{}{}\n", text, kSignature, hex);
}

Result<SignedCredential> ReadCredential(std::string_view bytes) {
  if (bytes.size() > kMaxCredentialBytes) {
    return BadInput(fmt::format("it has more than {} bytes", kMaxCredentialBytes));
  }
  if (!bytes.starts_with(kFirstLine)) {
    return BadInput("it does not begin as a credential of this version");
  }
  const std::size_t end = bytes.rfind(kSignature);
  if (end == std::string_view::npos || end == 0 || bytes[end - 1] != '\n') {
    return BadInput("it has no signature");
  }
  SignedCredential read;
  read.text = bytes.substr(0, end);
  read.credential = ReadLines(read.text);
  read.signature = FromHex(bytes.substr(end + kSignature.size(), 2 * kSignatureBytes));
  if (read.signature.size() != kSignatureBytes || read.credential.ToText() != read.text ||
      WithSignature(read.text, read.signature) != bytes) {
    return BadInput("it is not written as a controller writes it");
  }
  return read;
}

}  // namespace trainyard::launcher
