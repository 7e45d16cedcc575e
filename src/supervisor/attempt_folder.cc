// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attempt_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <string_view>
#include <system_error>

#include "base/try.h"
#include "io/sha256.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStart = "start";
constexpr const char* kLock = "lock";
constexpr const char* kReport = "report";
constexpr const char* kGroup = "pgid";
constexpr const char* kSpare = "spare";

Error CannotWrite(const std::string& path) {
  return Failed(
      fmt::format("{}: cannot be written: {}", path, std::generic_category().message(errno)));
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  return true;
}

// Makes the names of the files in a folder durable, too.
Status SyncFolder(const std::string& path, Durability durability) {
  if (durability == Durability::kUnsynced) {
    return {};
  }
  const io::Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.open() && fsync(folder.get()) == 0 ? Status() : CannotWrite(path);
}

bool IsSynced(int fd, Durability durability) {
  return durability == Durability::kUnsynced || fsync(fd) == 0;
}

constexpr mode_t kShared = 0660;

// The launcher has made it so.
bool IsSharedFolder(const std::string& path) {
  struct stat status {};
  constexpr mode_t kOfGroup = S_ISGID | S_IRWXG;
  return stat(path.c_str(), &status) == 0 && (status.st_mode & kOfGroup) == kOfGroup;
}

// The file has either its old content or all of the new, whenever this process stops.
Status WriteWhole(const std::string& folder, const char* name, std::string_view bytes,
                  Durability durability) {
  const std::string path = folder + "/" + name;
  const std::string draft = path + ".tmp";
  constexpr mode_t kMine = 0600;
  unlink(draft.c_str());
  io::Descriptor file(
      open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMine));
  if (IsSharedFolder(folder)) {
    fchmod(file.get(), kShared);
  }
  if (!file.open() || !WriteAll(file.get(), bytes) || !IsSynced(file.get(), durability)) {
    return CannotWrite(draft);
  }
  file.Close();
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    return CannotWrite(path);
  }
  return SyncFolder(folder, durability);
}

Status MakeFolder(const std::string& path) {
  constexpr mode_t kMine = 0700;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error || (mkdir(path.c_str(), kMine) != 0 && errno != EEXIST)) {
    return Failed(fmt::format("{}: cannot be made: {}", path,
                              error ? error.message() : std::generic_category().message(errno)));
  }
  return {};
}

// "JOB-ATTEMPT"
std::optional<v1::AttemptId> IdFrom(std::string_view name) {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  const char* const end = name.data() + name.size();
  const auto [dash, bad_job] = std::from_chars(name.data(), end, job);
  if (bad_job != std::errc{} || dash == end || *dash != '-') {
    return std::nullopt;
  }
  const auto [rest, bad_attempt] = std::from_chars(dash + 1, end, attempt);
  if (bad_attempt != std::errc{} || rest != end) {
    return std::nullopt;
  }
  v1::AttemptId id;
  id.set_job(job);
  id.set_attempt(attempt);
  return id;
}

}  // namespace

Status LinkCheckpoints(const std::string& state_folder, const std::string& shared) {
  std::error_code error;  // what cannot be made is found missing below
  fs::create_directories(state_folder, error);
  fs::create_directories(shared, error);
  const fs::path target = fs::absolute(shared, error);
  const fs::path link = fs::path(state_folder) / "checkpoints";
  if (!fs::exists(fs::symlink_status(link, error))) {
    fs::create_directory_symlink(target, link, error);
  }
  if (!fs::equivalent(link, target, error)) {
    return Failed(link.string() + ": is not " + target.string() +
                  "; expected the same --checkpoints as before, or another --state");
  }
  return {};
}

Status OpenForUsers(const std::string& state_folder) {
  constexpr auto kThrough = fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec;
  constexpr auto kList = fs::perms::group_read | fs::perms::others_read;
  for (const char* const part : {"", "/attempts", "/checkpoints", "/logs"}) {
    const std::string path = state_folder + part;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      RETURN_IF_ERROR(MakeFolder(path));
    }
    const bool listed = path.ends_with("/logs");  // old ones are found by their names
    fs::permissions(path, listed ? kThrough | kList : kThrough, error);
    if (error && access(path.c_str(), X_OK) != 0) {
      return Failed(fmt::format("{}: cannot be opened for users: {}", path, error.message()));
    }
  }
  return {};
}

AttemptFolder::AttemptFolder(const std::string& state_folder, v1::AttemptId id,
                             Durability durability)
    : id_(std::move(id)),
      name_(fmt::format("{}-{}", id_.job(), id_.attempt())),
      durability_(durability) {
  // One text for one folder, however the path was written: Mark() is compared.
  const fs::path path = (fs::absolute(state_folder) / "attempts" / name_).lexically_normal();
  path_ = path.string();
  state_folder_ = path.parent_path().parent_path().string();
}

Result<AttemptFolder> AttemptFolder::At(const std::string& path) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  const std::optional<v1::AttemptId> id = IdFrom(folder.filename().string());
  if (!id.has_value() || folder.parent_path().filename() != "attempts") {
    return InvalidArgument(
        fmt::format("'{}' is no attempt's folder; expected STATE/attempts/JOB-ATTEMPT", path));
  }
  return AttemptFolder(folder.parent_path().parent_path().string(), *id);
}

std::vector<AttemptFolder> AttemptFolder::AllIn(const std::string& state_folder) {
  std::vector<AttemptFolder> folders;
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (fs::directory_iterator entry(state_folder + "/attempts", error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    if (const auto id = IdFrom(path.filename().string()); id.has_value()) {
      folders.emplace_back(state_folder, *id);
    } else if (path.extension() == ".new" || path.extension() == ".gone") {
      leftovers.push_back(path);
    }
  }
  for (const fs::path& path : leftovers) {
    fs::remove_all(path, error);
  }
  return folders;
}

std::string AttemptFolder::LogFolder() const { return state_folder_ + "/logs/" + name_; }

std::string AttemptFolder::PathOfLog(int rank) const {
  return fmt::format("{}/rank-{}.log", LogFolder(), rank);
}

std::string AttemptFolder::CheckpointFolder() const {
  return fmt::format("{}/checkpoints/{}", state_folder_, id_.job());
}

std::string AttemptFolder::UniqueName() const {
  constexpr std::size_t kDigits = 12;
  io::Sha256 digest;
  digest.Update(path_);
  return name_ + "-" + digest.Hex().substr(0, kDigits);
}

std::string AttemptFolder::SharedMemoryFolder() const {
  return "/dev/shm/trainyard-" + UniqueName();
}

Status AttemptFolder::Create(const v1::StartAttempt& start) const {
  const std::string draft = path_ + ".new";
  for (const std::string& folder : {LogFolder(), CheckpointFolder(), draft}) {
    RETURN_IF_ERROR(MakeFolder(folder));
  }
  RETURN_IF_ERROR(WriteWhole(draft, kStart, start.SerializeAsString(), durability_));
  RETURN_IF_ERROR(WriteWhole(draft, kLock, "", Durability::kUnsynced));
  constexpr std::size_t kSpareBytes = 16384;
  RETURN_IF_ERROR(WriteWhole(draft, kSpare, std::string(kSpareBytes, '\0'), Durability::kUnsynced));
  if (std::rename(draft.c_str(), path_.c_str()) != 0) {
    return CannotWrite(path_);
  }
  return SyncFolder(state_folder_ + "/attempts", durability_);
}

Status AttemptFolder::Remove() const {
  const std::string gone = path_ + ".gone";
  if (std::rename(path_.c_str(), gone.c_str()) != 0 && errno != ENOENT) {
    return CannotWrite(path_);
  }
  unlink((path_ + ".start").c_str());
  unlink(LauncherLog().c_str());
  std::error_code error;
  fs::remove_all(SharedMemoryFolder(), error);
  fs::remove_all(gone, error);
  return error ? Failed(fmt::format("{}: cannot be removed: {}", gone, error.message())) : Status();
}

bool AttemptFolder::Exists() const { return access(path_.c_str(), F_OK) == 0; }

std::optional<io::Descriptor> AttemptFolder::TryLock() const {
  constexpr mode_t kMine = 0600;
  io::Descriptor lock(
      open(PathOf(kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMine));
  if (!lock.open() || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return std::nullopt;
  }
  return lock;
}

Status AttemptFolder::KeepStart(const v1::StartAttempt& start) const {
  return WriteWhole(state_folder_ + "/attempts", (name_ + ".start").c_str(),
                    start.SerializeAsString(), durability_);
}

Result<std::string> AttemptFolder::ReadPlain(const std::string& path) {
  constexpr off_t kMost = off_t{16} << 20;
  const io::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kMost) {
    return BadInput(path + ": is no plain file of at most 16 MiB");
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return bytes;
}

bool AttemptFolder::IsShared() const { return IsSharedFolder(path_); }

void AttemptFolder::Share(int descriptor) const {
  if (IsShared()) {
    fchmod(descriptor, kShared);
  }
}

Result<v1::StartAttempt> AttemptFolder::ReadStart() const {
  Result<std::string> bytes = ReadPlain(path_ + ".start");
  if (!bytes.ok()) {
    bytes = ReadPlain(PathOf(kStart));
    RETURN_IF_ERROR(bytes);
  }
  v1::StartAttempt start;
  if (!start.ParseFromString(bytes.value()) || KeyOf(start.id()) != KeyOf(id_)) {
    return BadInput(fmt::format("{}: is not the start of attempt {}", PathOf(kStart), name_));
  }
  return start;
}

Status AttemptFolder::WriteReport(const v1::AttemptReport& report) const {
  const std::string bytes = report.SerializeAsString();
  Status written = WriteWhole(path_, kReport, bytes, durability_);
  if (!written.ok() && unlink(PathOf(kSpare).c_str()) == 0) {
    written = WriteWhole(path_, kReport, bytes, durability_);
  }
  return written;
}

std::optional<v1::AttemptReport> AttemptFolder::ReadReport() const {
  const Result<std::string> bytes = ReadPlain(PathOf(kReport));
  v1::AttemptReport report;
  if (!bytes.ok() || !report.ParseFromString(bytes.value()) || KeyOf(report.id()) != KeyOf(id_)) {
    return std::nullopt;
  }
  return report;
}

Status AttemptFolder::WriteText(const char* name, const std::string& text) const {
  return WriteWhole(path_, name, text, durability_);
}

Status AttemptFolder::WriteGroup(const ProcessGroup& group) const {
  return WriteWhole(path_, kGroup, group.ToText(), durability_);
}

std::optional<ProcessGroup> AttemptFolder::ReadGroup() const {
  const Result<std::string> text = ReadPlain(PathOf(kGroup));
  return text.ok() ? ProcessGroup::FromText(text.value()) : std::nullopt;
}

// ------------------------------------------------------------------------------------------ lease

Duration TimeSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Duration{now.tv_nsec / 1000};
}

// Not synced: when the machine goes down, so do the processes that the lease is for.
Status WriteLease(const std::string& state_folder, const Lease& lease) {
  constexpr int kWidth = 20;  // always as long: on a full disk it is written over the last one
  std::error_code error;
  std::filesystem::create_directories(state_folder, error);
  const std::string path = state_folder + "/lease";
  const std::string draft = path + ".new";
  const auto written_to = [&lease](const std::string& name, std::ios::openmode mode) {
    std::ofstream file(name, mode);
    file << std::setw(kWidth) << lease.end.count() << ' ' << std::setw(kWidth)
         << lease.grace.count() << '\n';
    return static_cast<bool>(file.flush());
  };
  if (!written_to(draft, std::ios::trunc)) {
    return written_to(path, std::ios::in | std::ios::out) ? Status()
                                                          : Failed(path + ": cannot be written");
  }
  constexpr mode_t kReadable = 0644;  // by supervisors of other users
  chmod(draft.c_str(), kReadable);
  return std::rename(draft.c_str(), path.c_str()) == 0 ? Status()
                                                       : Failed(path + ": cannot be written");
}

std::optional<Lease> ReadLease(const std::string& state_folder) {
  std::ifstream file(state_folder + "/lease");
  std::int64_t end = 0;
  std::int64_t grace = 0;
  if (!(file >> end >> grace)) {
    return std::nullopt;
  }
  return Lease{.end = Duration{end}, .grace = Duration{grace}};
}

}  // namespace trainyard::supervisor
