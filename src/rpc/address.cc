// SPDX-License-Identifier: Apache-2.0
#include "rpc/address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/try.h"
#include "io/descriptor.h"

#undef NO_DATA  // of netdb.h; messages have the name, too

namespace trainyard::rpc {
namespace {

constexpr int kLastPort = 65'535;

Error Bad(std::string_view option, std::string_view text, std::string_view what) {
  return InvalidArgument(fmt::format("{} is '{}': {}", option, text, what));
}

// Where the host ends; npos: what stands there is none.
std::size_t HostEnd(std::string_view text) {
  std::size_t end = std::min(text.find(':'), text.size());
  if (text.starts_with('[')) {
    end = text.find(']');
    return end == std::string_view::npos || end == 1 ? std::string_view::npos : end + 1;
  }
  const std::string_view host = text.substr(0, end);
  const bool one_word = host.find_first_of(" \t/[]") == std::string_view::npos;
  return host.empty() || !one_word ? std::string_view::npos : end;
}

std::optional<int> PortOf(std::string_view text) {
  int port = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  return code == std::errc{} && end == text.data() + text.size() && port >= 0 && port <= kLastPort
             ? std::optional(port)
             : std::nullopt;
}

// `least`: of the port. Whether there is one.
Result<bool> CheckAddress(std::string_view option, std::string_view text, int least) {
  if (!text.starts_with('[') && std::count(text.begin(), text.end(), ':') > 1) {
    return Bad(option, text, "an IPv6 address needs brackets; expected it as in [::1]:7077");
  }
  const std::size_t end = HostEnd(text);
  if (end == std::string_view::npos || (end < text.size() && text[end] != ':')) {
    return Bad(option, text, "it begins with no host; expected HOST:PORT");
  }
  if (end == text.size()) {
    return false;
  }
  if (const std::optional<int> port = PortOf(text.substr(end + 1)); !port || *port < least) {
    return Bad(option, text,
               fmt::format("'{}' is no port; expected a number from {} to {}", text.substr(end + 1),
                           least, kLastPort));
  }
  return true;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Of HOST:PORT; none, and the resolver's code: there is no such host.
std::pair<Addresses, int> Resolve(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo* found = nullptr;
  const addrinfo wanted{.ai_socktype = SOCK_DGRAM};
  const int code = getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  return {Addresses(code == 0 ? found : nullptr, freeaddrinfo), code};
}

}  // namespace

Status CheckListenAddress(std::string_view option, std::string_view text) {
  ASSIGN_OR_RETURN(const bool has_port, CheckAddress(option, text, 0));
  return has_port ? Status() : Bad(option, text, "no port; expected HOST:PORT");
}

Result<std::string> ControllerAddress(std::string_view option, std::string_view text) {
  ASSIGN_OR_RETURN(const bool has_port, CheckAddress(option, text, 1));
  return has_port ? std::string(text) : fmt::format("{}:{}", text, kDefaultPort);
}

Status CheckHost(const std::string& address) {
  const auto [all, code] = Resolve(address);
  return code == 0 ? Status() : Failed(gai_strerror(code));
}

bool IsThisMachine(const std::string& address) {
  const auto [all, code] = Resolve(address);
  for (const addrinfo* at = all.get(); at != nullptr; at = at->ai_next) {
    const io::Descriptor socket(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // The kernel binds to addresses of the machine alone.
    if (socket.open() && bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace trainyard::rpc
