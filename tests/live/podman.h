// SPDX-License-Identifier: Apache-2.0
// Containers for tests of a live cluster, where the kernel lets podman run any.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {

// podman with images and containers of its own in the cluster's folder.
class Podman {
 public:
  explicit Podman(const LiveCluster& cluster) : cluster_(cluster) {
    Write("containers.conf", "");
    Write("storage.conf",
          fmt::format("[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
                      cluster.Path("images"), cluster.Path("run")));
  }

  // An image that is nothing but links into /usr, which is to be mounted from the host. Empty: it
  // runs; else what podman has said, with each way of running containers that it may know.
  [[nodiscard]] std::string MakeImage() const {
    const std::string root = cluster_.Path("root");
    for (const char* const folder : {"usr", "etc", "tmp", "proc", "sys", "dev", "run"}) {
      std::filesystem::create_directories(root + "/" + folder);
    }
    for (const char* const link : {"bin", "lib", "lib64", "sbin"}) {
      std::filesystem::create_directory_symlink(std::string("usr/") + link, root + "/" + link);
    }
    std::ofstream(root + "/etc/image") << "of trainyard's test\n";
    std::string refusals =
        Run("import", fmt::format("sh -c 'tar -C {} -c . | podman import - {}'", root, kImage));
    if (!refusals.empty()) {
      return refusals;
    }
    // A kernel may refuse the one and take the other.
    for (const char* const way : {"", kModestRunc}) {
      Write("containers.conf", way);
      const std::string refusal = Run(
          "run", fmt::format("podman run --rm --network host --ipc host --pid host --log-driver "
                             "passthrough --volume /usr:/usr:ro {} true",
                             kImage));
      if (refusal.empty()) {
        return {};
      }
      refusals += refusal;
    }
    return refusals;
  }

  // What a job's podman finds these settings by.
  [[nodiscard]] Words Options() const {
    return {"--env",
            "CONTAINERS_CONF=" + cluster_.Path("containers.conf"),
            "--env",
            "CONTAINERS_STORAGE_CONF=" + cluster_.Path("storage.conf"),
            "--container-image",
            kImage,
            "--container-mounts",
            "/usr:/usr:ro," + cluster_.Path("")};
  }
  // All containers, dead or alive.
  [[nodiscard]] std::string Containers() const {
    const std::string list = cluster_.Path("containers");
    EXPECT_EQ(Run("ps", fmt::format("sh -c 'podman ps --all --quiet >{}'", list)), "");
    return ReadAll(list);
  }

  static constexpr const char* kImage = "localhost/trainyard-test";

 private:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(cluster_.Path(name)) << text;
  }

  // Without CAP_SYS_RESOURCE podman's own limits cannot be set.
  static constexpr const char* kModestRunc =
      "[containers]\ndefault_ulimits = [\"nofile=1024:2000\", \"nproc=1000:2000\"]\n"
      "[engine]\nruntime = \"runc\"\n";

  // Empty: it has exited with 0.
  [[nodiscard]] std::string Run(const std::string& what, const std::string& command) const {
    const std::string errors = cluster_.Path("podman-" + what);
    const int status = std::system(
        fmt::format("CONTAINERS_CONF={} CONTAINERS_STORAGE_CONF={} {} >/dev/null 2>{} </dev/null",
                    cluster_.Path("containers.conf"), cluster_.Path("storage.conf"), command,
                    errors)
            .c_str());
    return status == 0 ? std::string()
                       : fmt::format("podman {}: status {}: {}", what, status, ReadAll(errors));
  }

  const LiveCluster& cluster_;
};

}  // namespace trainyard

// True after chroot(2) into a plain folder: the root is no mount point. The kernel then refuses the
// remount of the root by which podman unpacks an image.
inline bool RootIsNoMountPoint() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string id, parent, device, root, point, rest;
  while (mounts >> id >> parent >> device >> root >> point && std::getline(mounts, rest)) {
    if (point == "/") {
      return false;
    }
  }
  return true;
}

// Ends a test where podman runs no container. It is skipped where the kernel is to blame, and says
// so; in CI, whose machines can, it fails, but in a chroot; without podman it always fails.
#define TRAINYARD_NEEDS_CONTAINERS(podman)                                                        \
  ASSERT_EQ(std::system("podman --version"), 0) << "podman is in packages.txt";                   \
  if (const std::string refusal = (podman).MakeImage(); !refusal.empty()) {                       \
    ASSERT_TRUE(std::getenv("CI") == nullptr || RootIsNoMountPoint()) << refusal;                 \
    GTEST_SKIP() << "not checked: this kernel does not let podman run a container:\n" << refusal; \
  }                                                                                               \
  static_assert(true)
