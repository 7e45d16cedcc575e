// SPDX-License-Identifier: Apache-2.0
#include "cgroup/device_filter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace trainyard::cgroup {
namespace {

static_assert(sizeof(bpf_insn) == sizeof(std::uint64_t));

std::uint64_t Instruction(int code, int to, int from, std::int16_t offset, std::int32_t value) {
  bpf_insn one{};
  one.code = static_cast<__u8>(code);
  one.dst_reg = static_cast<__u8>(to & 0xf);
  one.src_reg = static_cast<__u8>(from & 0xf);
  one.off = offset;
  one.imm = value;
  return std::bit_cast<std::uint64_t>(one);
}

// register `to` = the field of the context, which is in register 1
std::uint64_t Load(int to, std::size_t field) {
  return Instruction(BPF_LDX | BPF_MEM | BPF_W, to, BPF_REG_1, static_cast<std::int16_t>(field), 0);
}

// Skips so many instructions unless the register has the value.
std::uint64_t SkipUnless(int which, std::uint32_t value, int instructions) {
  // 32 bits wide: values are not extended by their sign.
  return Instruction(BPF_JMP32 | BPF_JNE | BPF_K, which, 0, static_cast<std::int16_t>(instructions),
                     static_cast<std::int32_t>(value));
}

void AddAnswer(bool allowed, std::vector<std::uint64_t>& program) {
  program.push_back(Instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, allowed ? 1 : 0));
  program.push_back(Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
}

int Bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

Error CannotFilter(const std::string& folder, const char* what) {
  return Failed(fmt::format("{}: the filter of devices cannot be {}: {}", folder, what,
                            std::generic_category().message(errno)));
}

}  // namespace

Result<Device> DeviceAt(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return Failed(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  }
  if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return BadInput(path + ": is no device; expected a character or block device");
  }
  return Device{.is_block = S_ISBLK(status.st_mode),
                .major = major(status.st_rdev),
                .minor = minor(status.st_rdev)};
}

std::vector<std::uint64_t> FilterProgram(const std::vector<Device>& forbidden) {
  constexpr int kType = BPF_REG_2;
  constexpr int kMajor = BPF_REG_3;
  constexpr int kMinor = BPF_REG_4;
  constexpr std::int32_t kTypeBits = 0xffff;  // above them: read, write, make
  std::vector<std::uint64_t> program{
      Load(kType, offsetof(bpf_cgroup_dev_ctx, access_type)),
      Instruction(BPF_ALU64 | BPF_AND | BPF_K, kType, 0, 0, kTypeBits),
      Load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)),
      Load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)),
  };
  for (const Device& device : forbidden) {
    const std::uint32_t type = device.is_block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
    program.push_back(SkipUnless(kType, type, 4));
    program.push_back(SkipUnless(kMajor, device.major, 3));
    program.push_back(SkipUnless(kMinor, device.minor, 2));
    AddAnswer(false, program);
  }
  AddAnswer(true, program);
  return program;
}

Status AttachFilter(const std::string& group_folder, const std::vector<Device>& forbidden) {
  static constexpr std::array<char, 11> kLicense{"Apache-2.0"};
  const std::vector<std::uint64_t> program = FilterProgram(forbidden);
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = std::bit_cast<std::uint64_t>(program.data());
  load.insn_cnt = static_cast<__u32>(program.size());
  load.license = std::bit_cast<std::uint64_t>(kLicense.data());
  const int filter = Bpf(BPF_PROG_LOAD, load);
  if (filter < 0) {
    return CannotFilter(group_folder, "loaded");
  }
  const int folder = open(group_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bpf_attr attach{};
  attach.target_fd = static_cast<__u32>(folder);
  attach.attach_bpf_fd = static_cast<__u32>(filter);
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  Status attached = folder >= 0 && Bpf(BPF_PROG_ATTACH, attach) == 0
                        ? Status()
                        : Status(CannotFilter(group_folder, "attached"));
  close(filter);
  if (folder >= 0) {
    close(folder);
  }
  return attached;
}

}  // namespace trainyard::cgroup
