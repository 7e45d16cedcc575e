// SPDX-License-Identifier: Apache-2.0
#include "daemon/devices.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <memory>
#include <optional>
#include <set>

#include "base/text.h"
#include "trainyard/cluster.h"

namespace trainyard::daemon {
namespace {

// The part of NVML that is used (nvml.h): all functions return 0 if they succeed.
class Nvml {
 public:
  explicit Nvml(const std::string& library)
      : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose) {}

  [[nodiscard]] bool loaded() const { return library_ != nullptr; }
  template <typename... Arguments>
  [[nodiscard]] bool Call(const char* name, Arguments... arguments) const {
    return CodeOf(name, arguments...) == 0;
  }
  // kMissing: the library has no such function.
  template <typename... Arguments>
  [[nodiscard]] int CodeOf(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(library_.get(), name));
    return function != nullptr ? function(arguments...) : kMissing;
  }
  static constexpr int kMissing = -1;
  static constexpr int kLost = 15;  // NVML_ERROR_GPU_IS_LOST

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

class GpuHealth::Driver {
 public:
  explicit Driver(const std::string& library)
      : nvml_(library), up_(nvml_.loaded() && nvml_.Call("nvmlInit_v2")) {}
  ~Driver() {
    if (up_) {
      static_cast<void>(nvml_.Call("nvmlShutdown"));
    }
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] unsigned count() const {
    unsigned count = 0;
    return up_ && nvml_.Call("nvmlDeviceGetCount_v2", &count) ? count : 0;
  }
  // Uncorrected memory errors since the driver was loaded, 0 where it does not count them. None:
  // the GPU does not answer any more.
  [[nodiscard]] std::optional<std::uint64_t> ErrorsOf(unsigned gpu) const {
    constexpr int kUncorrected = 1;
    constexpr int kVolatile = 0;
    void* device = nullptr;
    unsigned long long errors = 0;  // NOLINT(google-runtime-int): NVML's
    int code = nvml_.CodeOf("nvmlDeviceGetHandleByIndex_v2", gpu, &device);
    if (code == 0) {
      code = nvml_.CodeOf("nvmlDeviceGetTotalEccErrors", device, kUncorrected, kVolatile, &errors);
    }
    return code == Nvml::kLost ? std::nullopt
                               : std::optional<std::uint64_t>(code == 0 ? errors : 0);
  }

 private:
  Nvml nvml_;
  bool up_;
};

GpuHealth::GpuHealth(const std::string& library) : driver_(std::make_unique<Driver>(library)) {
  for (unsigned gpu = 0; gpu < driver_->count(); ++gpu) {
    errors_.push_back(driver_->ErrorsOf(gpu).value_or(0));
  }
}

GpuHealth::~GpuHealth() = default;

std::string GpuHealth::FaultOf(int gpu) const {
  const auto index = static_cast<std::size_t>(gpu);
  if (gpu < 0 || index >= errors_.size()) {
    return {};
  }
  const std::string name = "GPU " + std::to_string(gpu);
  const std::optional<std::uint64_t> errors = driver_->ErrorsOf(static_cast<unsigned>(gpu));
  if (!errors) {
    return name + ": the driver has lost it";
  }
  return *errors > errors_[index] ? name + ": uncorrected memory errors" : std::string();
}

Result<Devices> ParseDevices(const std::string& text) {
  if (text == "auto") {
    return FindDevices();
  }
  const std::size_t colon = text.find(':');
  const auto gpus = base::ToNumber(text.substr(0, colon));
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

}  // namespace trainyard::daemon
