// SPDX-License-Identifier: Apache-2.0
#include "supervisor/data/local_data_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/unix_time.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "supervisor/data/rsync.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Empty: done; otherwise what is wrong.
std::string WriteCopy(const std::string& folder, const v1::DataCopy& copy) {
  const std::string path = folder + "/copy";
  const std::string text = copy.DebugString();
  constexpr mode_t kMode = 0644;
  const io::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
  const bool written = file.open() && write(file.get(), text.data(), text.size()) ==
                                          static_cast<ssize_t>(text.size());
  return written ? std::string()
                 : fmt::format("{}: cannot be written: {}", path,
                               std::generic_category().message(errno));
}

std::optional<v1::DataCopy> ReadCopy(const fs::path& folder) {
  const Result<std::string> text = io::ReadBytes((folder / "copy").string());
  v1::DataCopy copy;
  return text.ok() && google::protobuf::TextFormat::ParseFromString(text.value(), &copy) &&
                 FolderNameOf(copy.set().name()) == folder.filename().string()
             ? std::optional(std::move(copy))
             : std::nullopt;
}

// What the files take, rounded up; 1 at least.
std::int64_t MibOf(const std::string& folder) {
  constexpr std::uintmax_t kMib = std::uintmax_t{1} << 20;
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code missing;
    const std::uintmax_t size = entry->is_regular_file(missing) && !entry->is_symlink(missing)
                                    ? entry->file_size(missing)
                                    : 0;
    bytes += missing ? 0 : size;
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>((bytes + kMib - 1) / kMib));
}

// All that has been written to the file system of the folder is on the disk.
void Sync(const std::string& folder) {
  if (const io::Descriptor here(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      here.open()) {
    syncfs(here.get());
  }
}

class LocalDataStore final : public DataStore {
 public:
  LocalDataStore(LocalDataOptions options, std::function<void()> on_reports)
      : options_(std::move(options)), on_reports_(std::move(on_reports)) {
    std::error_code error;  // what cannot be made is found missing by the first fetch
    for (const char* const part : {"whole", "begun", "gone"}) {
      fs::create_directories(options_.folder + "/" + part, error);
    }
    cleaner_ = std::thread([this] { Clean(); });
  }
  ~LocalDataStore() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (auto& [name, thread] : fetches_) {
      thread.join();
    }
    cleaner_.join();
  }
  LocalDataStore(const LocalDataStore&) = delete;
  LocalDataStore& operator=(const LocalDataStore&) = delete;

  std::vector<v1::DataCopy> Recover() override {
    std::vector<v1::DataCopy> found;
    for (const char* const part : {"whole", "begun"}) {
      std::error_code error;
      for (const fs::directory_entry& entry :
           fs::directory_iterator(options_.folder + "/" + part, error)) {
        std::optional<v1::DataCopy> copy = ReadCopy(entry.path());
        const bool is_whole = std::string_view(part) == "whole";
        const bool twice =
            copy && std::any_of(found.begin(), found.end(), [&copy](const v1::DataCopy& other) {
              return other.set().name() == copy->set().name();
            });
        if (!copy || twice || (copy->mib() > 0) != is_whole) {
          MoveAway(entry.path().string());
        } else {
          found.push_back(*std::move(copy));
        }
      }
    }
    return found;
  }

  void Fetch(const v1::DataSet& data) override {
    JoinEnded(data.name());
    fetches_[data.name()] = std::thread([this, data] { Run(data); });
  }

  void Remove(const std::string& name) override {
    JoinEnded(name);
    for (const char* const part : {"whole", "begun"}) {
      MoveAway(fmt::format("{}/{}/{}", options_.folder, part, FolderNameOf(name)));
    }
  }

  [[nodiscard]] std::string FolderOf(const std::string& name) const override {
    return fmt::format("{}/whole/{}/files", options_.folder, FolderNameOf(name));
  }

  std::vector<FetchReport> TakeReports() override {
    std::vector<FetchReport> reports;
    {
      const std::lock_guard lock(mutex_);
      reports = std::exchange(reports_, {});
    }
    for (const FetchReport& report : reports) {
      if (report.ended) {
        JoinEnded(report.name);
      }
    }
    return reports;
  }

 private:
  // The thread of a fetch that has told its end.
  void JoinEnded(const std::string& name) {
    if (const auto ended = fetches_.extract(name); !ended.empty()) {
      ended.mapped().join();
    }
  }

  [[nodiscard]] bool IsEnding() {
    const std::lock_guard lock(mutex_);
    return ending_;
  }

  // A newer report of progress replaces one that has not been taken yet.
  void Tell(FetchReport report) {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(reports_, [&report](const FetchReport& other) {
        return other.name == report.name && !other.ended;
      });
      reports_.push_back(std::move(report));
    }
    on_reports_();
  }

  void Run(const v1::DataSet& data) {
    FetchReport report{.name = data.name()};
    const RsyncEnd end = Bring(data, report);
    if (end.stopped) {
      return;
    }
    report.ended = true;
    report.error = end.error;
    report.cause = end.cause;
    Tell(std::move(report));
  }

  RsyncEnd Bring(const v1::DataSet& data, FetchReport& report) {
    const std::string name = FolderNameOf(data.name());
    const std::string begun = fmt::format("{}/begun/{}", options_.folder, name);
    std::error_code error;
    fs::create_directories(begun + "/files", error);
    v1::DataCopy copy;
    *copy.mutable_set() = data;
    std::string mistake = WriteCopy(begun, copy);
    if (!mistake.empty()) {
      return {.error = std::move(mistake), .cause = v1::AttemptReport::DISK};
    }
    Clock::time_point told{};
    RsyncEnd end = RunRsync(
        {.program = options_.rsync,
         .from = data.home(),
         .to = begun + "/files",
         .rate_kbps = options_.rate_kbps},
        [&](double part) {
          constexpr std::chrono::seconds kPause(1);
          const Clock::time_point now = Clock::now();
          report.fetched = part;
          if (now - told >= kPause) {
            told = now;
            Tell(report);
          }
        },
        [this] { return IsEnding(); });
    if (end.stopped || !end.error.empty()) {
      return end;
    }
    report.mib = MibOf(begun + "/files");
    copy.set_mib(report.mib);
    copy.set_fetched_at(base::UnixNow());
    mistake = WriteCopy(begun, copy);
    Sync(begun);
    const std::string whole = fmt::format("{}/whole/{}", options_.folder, name);
    if (mistake.empty() && rename(begun.c_str(), whole.c_str()) != 0) {
      mistake =
          fmt::format("{}: cannot be made: {}", whole, std::generic_category().message(errno));
    }
    Sync(options_.folder);
    return {.error = std::move(mistake), .cause = v1::AttemptReport::DISK};
  }

  // It is not there any more when the call comes back; its bytes go later.
  void MoveAway(const std::string& path) {
    std::error_code error;
    const std::lock_guard lock(mutex_);
    std::string to;
    do {
      to = fmt::format("{}/gone/{}", options_.folder, ++removed_);
    } while (fs::exists(to, error));
    if (rename(path.c_str(), to.c_str()) == 0) {
      wake_.notify_all();
    }
  }

  // The cleaner's thread: what an earlier agent has left goes, too.
  void Clean() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      std::error_code error;
      const fs::directory_iterator first(options_.folder + "/gone", error);
      if (error || first == fs::directory_iterator()) {
        wake_.wait(lock);
        continue;
      }
      const fs::path path = first->path();
      lock.unlock();
      fs::remove_all(path, error);
      lock.lock();
      if (error) {
        wake_.wait(lock);
      }
    }
  }

  const LocalDataOptions options_;
  const std::function<void()> on_reports_;
  std::map<std::string, std::thread> fetches_;  // the agent's thread alone knows it

  std::mutex mutex_;  // of all that follows
  std::condition_variable wake_;
  std::vector<FetchReport> reports_;
  std::uint64_t removed_ = 0;
  bool ending_ = false;

  std::thread cleaner_;
};

}  // namespace

std::string FolderNameOf(const std::string& data_set) {
  std::string name;
  for (const char letter : data_set) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' ||
                          (letter == '.' && !name.empty());
    name += is_plain ? std::string(1, letter)
                     : fmt::format("%{:02x}", static_cast<unsigned char>(letter));
  }
  return name;
}

std::unique_ptr<DataStore> MakeLocalDataStore(LocalDataOptions options,
                                              std::function<void()> on_reports) {
  return std::make_unique<LocalDataStore>(std::move(options), std::move(on_reports));
}

}  // namespace trainyard::supervisor
