// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/file.h"
#include "store/folder.h"
#include "store/sqlite.h"

namespace trainyard::store {
namespace {

constexpr const char* kName = "controller.db";
// More than a decision about the jobs of a large cluster takes.
constexpr std::int64_t kReserve = std::int64_t{4} << 20;
constexpr std::int64_t kApplicationId = 0x54726e79;  // "Trny"
constexpr std::int64_t kVersion = 1;

constexpr const char* kCreate = R"(
  CREATE TABLE blocks (number INTEGER PRIMARY KEY, block BLOB NOT NULL, sha256 TEXT NOT NULL)
    STRICT;
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE opened (times INTEGER NOT NULL) STRICT;
  INSERT INTO opened VALUES (0);)";

// Made also in files of versions that had no such tables.
constexpr const char* kCreateLater = R"(
  CREATE TABLE IF NOT EXISTS snapshots (block INTEGER PRIMARY KEY, state BLOB NOT NULL,
    sha256 TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS pages (number INTEGER PRIMARY KEY, block INTEGER NOT NULL,
    page BLOB NOT NULL, sha256 TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS notices (destination TEXT, number INTEGER, notice TEXT NOT NULL,
    PRIMARY KEY (destination, number)) STRICT, WITHOUT ROWID;)";

constexpr const char* kNoSnapshot = "no snapshot can be written";
constexpr const char* kNoNotice = "no notice can be written";

class SqliteStore final : public Store, public NoticeTable {
 public:
  SqliteStore(io::Descriptor lock, const std::string& folder)
      : lock_(std::move(lock)), path_(folder + "/" + kName), reserve_(folder + "/reserve") {}

  Status Open() {
    RETURN_IF_ERROR(database_.Open(path_, {.application_id = kApplicationId,
                                           .version = kVersion,
                                           .owner = "a controller's",
                                           .create = kCreate}));
    RETURN_IF_ERROR(database_.Run("UPDATE opened SET times = times + 1"));
    RETURN_IF_ERROR(database_.Run(kCreateLater));
    return Prepare();
  }

  Status Append(std::string_view block) override {
    const std::string digest = io::Sha256Hex(block);
    const bool bound = BindBlob(append_, 1, block) && BindText(append_, 2, digest);
    Status done = bound && sqlite3_step(append_.get()) == SQLITE_DONE
                      ? Status()
                      : database_.Failure("cannot be appended to");
    sqlite3_reset(append_.get());
    sqlite3_clear_bindings(append_.get());
    return done;
  }

  bool UseReserve() override { return unlink(reserve_.c_str()) == 0; }

  Status Read(std::uint64_t first,
              const std::function<Status(std::string_view)>& take) const override {
    auto next = static_cast<std::int64_t>(first);
    const SqliteStatement rows = database_.Compile(fmt::format(
        "SELECT number, block, sha256 FROM blocks WHERE number >= {} ORDER BY number", next));
    int code = SQLITE_ERROR;
    for (; rows != nullptr && (code = sqlite3_step(rows.get())) == SQLITE_ROW; ++next) {
      if (const std::int64_t number = sqlite3_column_int64(rows.get(), 0); number != next) {
        return BadInput(
            fmt::format("{}: block {} is missing; the next is {}", path_, next, number));
      }
      const std::string_view block = Column(rows, 1);
      if (io::Sha256Hex(block) != Column(rows, 2)) {
        return BadInput(fmt::format("{}: block {} is damaged; expected the SHA-256 \"{}\"", path_,
                                    next, Column(rows, 2)));
      }
      RETURN_IF_ERROR(take(block));
    }
    return code == SQLITE_DONE ? Status()
                               : database_.Failure(fmt::format("cannot be read at block {}", next));
  }

  Status DropBlocks(std::uint64_t last) override {
    return database_.Run(fmt::format("DELETE FROM blocks WHERE number <= {}", last),
                         "no block can be deleted");
  }

  Status AddSnapshot(const StoredSnapshot& snapshot, std::uint64_t before) override {
    return Commit(kNoSnapshot, [&] { return Replace(snapshot, before); });
  }

  Result<std::vector<std::uint64_t>> Snapshots() const override {
    const SqliteStatement rows =
        database_.Compile("SELECT block FROM snapshots ORDER BY block DESC");
    std::vector<std::uint64_t> blocks;
    int code = SQLITE_ERROR;
    while (rows != nullptr && (code = sqlite3_step(rows.get())) == SQLITE_ROW) {
      blocks.push_back(static_cast<std::uint64_t>(sqlite3_column_int64(rows.get(), 0)));
    }
    if (code != SQLITE_DONE) {
      return database_.Failure("cannot be read");
    }
    return blocks;
  }

  Result<StoredSnapshot> Snapshot(std::uint64_t block) const override {
    StoredSnapshot snapshot{.block = block, .state = {}, .pages = {}};
    ASSIGN_OR_RETURN(
        std::vector<std::string> states,
        Checked(fmt::format("SELECT state, sha256 FROM snapshots WHERE block = {}", block), block));
    if (states.empty()) {
      return BadInput(fmt::format("{}: there is no snapshot at entry {}", path_, block));
    }
    snapshot.state = std::move(states.front());
    ASSIGN_OR_RETURN(
        std::vector<std::string> pages,
        Checked(
            fmt::format("SELECT page, sha256 FROM pages WHERE block <= {} ORDER BY number", block),
            block));
    snapshot.pages = std::move(pages);
    return snapshot;
  }

  Result<std::string> Setting(std::string_view name) const override {
    const SqliteStatement row = database_.Compile("SELECT value FROM settings WHERE name = ?");
    const bool bound = row != nullptr && BindText(row, 1, name);
    const int code = bound ? sqlite3_step(row.get()) : SQLITE_ERROR;
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
      return database_.Failure("cannot be read");
    }
    return code == SQLITE_ROW ? std::string(Column(row, 0)) : std::string();
  }

  Status SetSetting(std::string_view name, std::string_view value) override {
    const SqliteStatement row = database_.Compile("INSERT OR REPLACE INTO settings VALUES (?, ?)");
    const bool bound = row != nullptr && BindText(row, 1, name) && BindText(row, 2, value);
    return bound && sqlite3_step(row.get()) == SQLITE_DONE ? Status()
                                                           : database_.Failure("cannot be written");
  }

  [[nodiscard]] std::uint64_t epoch() const override { return epoch_; }

  [[nodiscard]] NoticeTable& notices() override { return *this; }

  Result<std::vector<StoredNotice>> Of(std::string_view destination) const override {
    const SqliteStatement rows = database_.Compile(
        "SELECT number, notice FROM notices WHERE destination = ? ORDER BY number");
    std::vector<StoredNotice> all;
    const bool bound = rows != nullptr && BindText(rows, 1, destination);
    int code = SQLITE_ERROR;
    while (bound && (code = sqlite3_step(rows.get())) == SQLITE_ROW) {
      all.push_back({.number = static_cast<std::uint64_t>(sqlite3_column_int64(rows.get(), 0)),
                     .text = std::string(Column(rows, 1))});
    }
    if (code != SQLITE_DONE) {
      return database_.Failure("cannot be read");
    }
    return all;
  }

  void Put(std::string_view destination, StoredNotice notice) override {
    changes_.push_back({std::string(destination), notice.number, std::move(notice.text)});
  }

  void Drop(std::string_view destination, std::uint64_t number) override {
    changes_.push_back({std::string(destination), number, std::nullopt});
  }

  Status Save() override {
    return changes_.empty() ? Status() : Commit(kNoNotice, [] { return Status(); });
  }

 private:
  // Of the notices; without a text one is dropped.
  struct Change {
    std::string destination;
    std::uint64_t number = 0;
    std::optional<std::string> text;
  };

  // What `write` does and the changes of the notices, or nothing of either.
  template <typename Write>
  Status Commit(const char* what, const Write& write) {
    RETURN_IF_ERROR(database_.Run("BEGIN IMMEDIATE", what));
    Status status = write();
    for (std::size_t i = 0; status.ok() && i < changes_.size(); ++i) {
      status = Make(changes_[i]);
    }
    if (status.ok()) {
      status = database_.Run("COMMIT", what);
    }
    if (status.ok()) {
      changes_.clear();
    } else if (sqlite3_get_autocommit(sqlite3_db_handle(append_.get())) == 0) {
      (void)database_.Run("ROLLBACK");
    }
    return status;
  }

  Status Make(const Change& change) {
    const SqliteStatement row = database_.Compile(
        change.text ? "INSERT OR REPLACE INTO notices VALUES (?1, ?2, ?3)"
                    : "DELETE FROM notices WHERE destination = ?1 AND number = ?2");
    const bool bound =
        row != nullptr && BindText(row, 1, change.destination) &&
        sqlite3_bind_int64(row.get(), 2, static_cast<std::int64_t>(change.number)) == SQLITE_OK &&
        (!change.text || BindText(row, 3, *change.text));
    return bound && sqlite3_step(row.get()) == SQLITE_DONE ? Status()
                                                           : database_.Failure(kNoNotice);
  }

  Status Prepare() {
    append_ = database_.Compile("INSERT INTO blocks (block, sha256) VALUES (?, ?)");
    const SqliteStatement row = database_.Compile("SELECT times FROM opened");
    if (append_ == nullptr || row == nullptr || sqlite3_step(row.get()) != SQLITE_ROW) {
      return database_.Failure("cannot be opened");
    }
    epoch_ = static_cast<std::uint64_t>(sqlite3_column_int64(row.get(), 0));
    return {};
  }

  Status Replace(const StoredSnapshot& snapshot, std::uint64_t before) {
    RETURN_IF_ERROR(database_.Run(
        fmt::format("DELETE FROM snapshots WHERE block <> {0}; DELETE FROM pages WHERE block > {0}",
                    before),
        kNoSnapshot));
    RETURN_IF_ERROR(Insert(fmt::format("INSERT INTO snapshots VALUES ({}, ?, ?)", snapshot.block),
                           snapshot.state));
    for (const std::string& page : snapshot.pages) {
      RETURN_IF_ERROR(Insert(
          fmt::format("INSERT INTO pages (block, page, sha256) VALUES ({}, ?, ?)", snapshot.block),
          page));
    }
    return {};
  }

  Status Insert(const std::string& sql, std::string_view bytes) {
    const std::string digest = io::Sha256Hex(bytes);
    const SqliteStatement row = database_.Compile(sql);
    const bool bound = row != nullptr && BindBlob(row, 1, bytes) && BindText(row, 2, digest);
    return bound && sqlite3_step(row.get()) == SQLITE_DONE ? Status()
                                                           : database_.Failure(kNoSnapshot);
  }

  // Bytes and their digests, of the snapshot at `block`.
  Result<std::vector<std::string>> Checked(const std::string& sql, std::uint64_t block) const {
    const SqliteStatement rows = database_.Compile(sql);
    std::vector<std::string> all;
    int code = SQLITE_ERROR;
    while (rows != nullptr && (code = sqlite3_step(rows.get())) == SQLITE_ROW) {
      all.emplace_back(Column(rows, 0));
      if (io::Sha256Hex(all.back()) != Column(rows, 1)) {
        return BadInput(
            fmt::format("{}: the snapshot at entry {} is damaged; expected the SHA-256 \"{}\"",
                        path_, block, Column(rows, 1)));
      }
    }
    if (code != SQLITE_DONE) {
      return database_.Failure(fmt::format("the snapshot at entry {} cannot be read", block));
    }
    return all;
  }

  // In this order: statements end before their database, and that before the lock.
  io::Descriptor lock_;
  std::string path_;
  std::string reserve_;
  SqliteFile database_;
  SqliteStatement append_;
  std::uint64_t epoch_ = 0;
  std::vector<Change> changes_;  // not on disk yet
};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const std::string& folder) {
  ASSIGN_OR_RETURN(io::Descriptor held, HoldFolder(folder, "controller"));
  // SQLite would give its file the mode that the umask leaves.
  RETURN_IF_ERROR(MakeFile(folder, kName));
  auto store = std::make_unique<SqliteStore>(std::move(held), folder);
  RETURN_IF_ERROR(store->Open());
  SetAside(folder, "reserve", kReserve);  // where there is room
  return std::unique_ptr<Store>(std::move(store));
}

Status CopyStore(const std::string& folder, const std::string& to) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(fs::path(folder) / kName, error)) {
    return InvalidArgument(folder + ": there is no state of a controller; expected its --state");
  }
  ASSIGN_OR_RETURN(const io::Descriptor held, HoldFolder(folder, "controller"));
  for (const std::string& file : {std::string(kName), std::string(kName) + "-wal"}) {
    if (const fs::path from = fs::path(folder) / file; fs::exists(from, error)) {
      fs::copy_file(from, fs::path(to) / file, error);
      if (error) {
        return Failed(
            fmt::format("{}: cannot be copied to {}: {}", from.string(), to, error.message()));
      }
    }
  }
  return {};
}

}  // namespace trainyard::store
