// SPDX-License-Identifier: Apache-2.0
#include "daemon/devices.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <memory>
#include <set>

#include "base/text.h"
#include "trainyard/cluster.h"

namespace trainyard {
namespace {

// The part of NVML that is used (nvml.h): all functions return 0 if they succeed.
class Nvml {
 public:
  explicit Nvml(const std::string& library)
      : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose) {}

  [[nodiscard]] bool loaded() const { return library_ != nullptr; }
  template <typename... Arguments>
  [[nodiscard]] bool Call(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(library_.get(), name));
    return function != nullptr && function(arguments...) == 0;
  }

 private:
  std::unique_ptr<void, int (*)(void*)> library_;
};

std::string TextOf(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  if (bytes == nullptr ||
      inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr) {
    return {};
  }
  return text.data();
}

}  // namespace

Result<Devices> FindDevices(const std::string& library) {
  const Nvml nvml(library);
  if (!nvml.loaded()) {
    return Failed(library + ": is not here, so no NVIDIA GPU can be found; expected --gpus N");
  }
  unsigned count = 0;
  if (!nvml.Call("nvmlInit_v2") || !nvml.Call("nvmlDeviceGetCount_v2", &count)) {
    return Failed(library + ": does not answer; expected a working NVIDIA driver, or --gpus N");
  }
  Devices devices{.gpus = static_cast<int>(count)};
  void* first = nullptr;
  std::array<char, 96> name{};
  if (count > 0 && nvml.Call("nvmlDeviceGetHandleByIndex_v2", 0U, &first) &&
      nvml.Call("nvmlDeviceGetName", first, name.data(), static_cast<unsigned>(name.size() - 1))) {
    devices.type = name.data();
  }
  static_cast<void>(nvml.Call("nvmlShutdown"));
  if (count == 0) {
    return Failed("there is no NVIDIA GPU here; expected --gpus N");
  }
  return devices;
}

Result<Devices> ParseDevices(const std::string& text) {
  if (text == "auto") {
    return FindDevices();
  }
  const std::size_t colon = text.find(':');
  const auto gpus = ToNumber(text.substr(0, colon));
  if (!gpus || *gpus < 1 || *gpus > kMaxGpusPerNode || *gpus != static_cast<int>(*gpus)) {
    return InvalidArgument("--gpus is '" + text + "'; expected a number from 1 to " +
                           std::to_string(kMaxGpusPerNode) + ", N:TYPE or auto");
  }
  return Devices{.gpus = static_cast<int>(*gpus),
                 .type = colon == std::string::npos ? "" : text.substr(colon + 1)};
}

Result<std::string> AddressOf(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Failed("the network interfaces cannot be listed");
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(list, &freeifaddrs);
  std::set<std::string> names;
  std::string found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) {
      continue;
    }
    const std::string address = TextOf(at->ifa_addr);
    if (address.empty()) {
      continue;
    }
    names.insert(at->ifa_name);
    if (interface == at->ifa_name && (found.empty() || at->ifa_addr->sa_family == AF_INET)) {
      found = address;
    }
  }
  if (!found.empty()) {
    return found;
  }
  std::string known;
  for (const std::string& name : names) {
    known += (known.empty() ? "" : ", ") + name;
  }
  return InvalidArgument("there is no interface '" + interface +
                         "' with an address; known: " + known);
}

}  // namespace trainyard
