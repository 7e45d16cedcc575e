// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <system_error>
#include <utility>

#include "io/file.h"
#include "store/folder.h"

namespace trainyard {
namespace {

constexpr const char* kName = "controller.db";
constexpr std::int64_t kApplicationId = 0x54726e79;  // "Trny"
constexpr std::int64_t kVersion = 1;

constexpr const char* kCreate = R"(
  CREATE TABLE blocks (number INTEGER PRIMARY KEY, block BLOB NOT NULL, sha256 TEXT NOT NULL)
    STRICT;
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE opened (times INTEGER NOT NULL) STRICT;
  INSERT INTO opened VALUES (0);)";

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// Never a null pointer: to SQLite that is NULL, not an empty value.
const char* BytesOf(std::string_view bytes) { return bytes.empty() ? "" : bytes.data(); }

bool BindText(const Statement& statement, int index, std::string_view text) {
  return sqlite3_bind_text64(statement.get(), index, BytesOf(text), text.size(), SQLITE_STATIC,
                             SQLITE_UTF8) == SQLITE_OK;
}

bool BindBlob(const Statement& statement, int index, std::string_view bytes) {
  return sqlite3_bind_blob64(statement.get(), index, BytesOf(bytes), bytes.size(), SQLITE_STATIC) ==
         SQLITE_OK;
}

// Of the present row, until the next step.
std::string_view Column(const Statement& statement, int index) {
  const void* const bytes = sqlite3_column_blob(statement.get(), index);
  const int size = sqlite3_column_bytes(statement.get(), index);
  return bytes == nullptr
             ? std::string_view()
             : std::string_view(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

class SqliteStore final : public Store {
 public:
  SqliteStore(HeldFile lock, std::string path) : lock_(std::move(lock)), path_(std::move(path)) {}

  Status Open() {
    // With a "./", as SQLite takes a name that begins with "file:" for an address.
    const std::string name = path_.starts_with('/') ? path_ : "./" + path_;
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(name.c_str(), &opened,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(opened);  // also after a failure, to hold its reason
    if (code != SQLITE_OK) {
      return Failure("cannot be opened");
    }
    sqlite3_extended_result_codes(opened, 1);
    // Exclusive: no other program can write or hold up Append, and no memory is shared, which
    // network file systems cannot do.
    if (Status done = Run("PRAGMA locking_mode = EXCLUSIVE"); !done.ok()) {
      return done;
    }
    const Result<bool> fresh = CheckKind();
    if (!fresh.ok()) {
      return fresh.error();
    }
    for (const std::string& sql :
         {std::string("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"),
          fresh.value() ? fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};{}",
                                      kApplicationId, kVersion, kCreate)
                        : std::string(),
          std::string("UPDATE opened SET times = times + 1; COMMIT")}) {
      if (Status done = Run(sql); !done.ok()) {
        return done;
      }
    }
    return Prepare();
  }

  Status Append(std::string_view block) override {
    const std::string digest = Sha256Hex(block);
    const bool bound = BindBlob(append_, 1, block) && BindText(append_, 2, digest);
    Status done = bound && sqlite3_step(append_.get()) == SQLITE_DONE
                      ? Status()
                      : Failure("cannot be appended to");
    sqlite3_reset(append_.get());
    sqlite3_clear_bindings(append_.get());
    return done;
  }

  Status Read(const std::function<Status(std::string_view)>& take) const override {
    const Statement rows = Compile("SELECT number, block, sha256 FROM blocks ORDER BY number");
    int code = SQLITE_ERROR;
    std::int64_t next = 1;
    for (; rows != nullptr && (code = sqlite3_step(rows.get())) == SQLITE_ROW; ++next) {
      if (const std::int64_t number = sqlite3_column_int64(rows.get(), 0); number != next) {
        return BadInput(
            fmt::format("{}: block {} is missing; the next is {}", path_, next, number));
      }
      const std::string_view block = Column(rows, 1);
      if (Sha256Hex(block) != Column(rows, 2)) {
        return BadInput(fmt::format("{}: block {} is damaged; expected the SHA-256 \"{}\"", path_,
                                    next, Column(rows, 2)));
      }
      if (Status taken = take(block); !taken.ok()) {
        return taken;
      }
    }
    return code == SQLITE_DONE ? Status()
                               : Failure(fmt::format("cannot be read at block {}", next));
  }

  Result<std::string> Setting(std::string_view name) const override {
    const Statement row = Compile("SELECT value FROM settings WHERE name = ?");
    const bool bound = row != nullptr && BindText(row, 1, name);
    const int code = bound ? sqlite3_step(row.get()) : SQLITE_ERROR;
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
      return Failure("cannot be read");
    }
    return code == SQLITE_ROW ? std::string(Column(row, 0)) : std::string();
  }

  Status SetSetting(std::string_view name, std::string_view value) override {
    const Statement row = Compile("INSERT OR REPLACE INTO settings VALUES (?, ?)");
    const bool bound = row != nullptr && BindText(row, 1, name) && BindText(row, 2, value);
    return bound && sqlite3_step(row.get()) == SQLITE_DONE ? Status()
                                                           : Failure("cannot be written");
  }

  [[nodiscard]] std::uint64_t epoch() const override { return epoch_; }

 private:
  // Of the last call of SQLite.
  [[nodiscard]] Error Failure(std::string_view what) const {
    const std::string why = sqlite3_errmsg(database_.get());
    switch (sqlite3_errcode(database_.get()) & 0xff) {
      case SQLITE_NOTADB:
        return BadInput(fmt::format("{}: is not a database; expected a controller's", path_));
      case SQLITE_CORRUPT:
        return BadInput(fmt::format("{}: {}: it is damaged ({})", path_, what, why));
      case SQLITE_BUSY:
        return Failed(fmt::format("{}: another program has it open; expected none", path_));
      case SQLITE_FULL:
        return Failed(fmt::format("{}: {}: the disk is full", path_, what));
      case SQLITE_IOERR:
        return Failed(
            fmt::format("{}: {}: {} ({})", path_, what, why,
                        std::generic_category().message(sqlite3_system_errno(database_.get()))));
      default:
        return Failed(fmt::format("{}: {}: {}", path_, what, why));
    }
  }

  Status Run(const std::string& sql) {
    const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? Status() : Failure("cannot be opened");
  }

  // Null on failure.
  [[nodiscard]] Statement Compile(std::string_view sql) const {
    sqlite3_stmt* compiled = nullptr;
    sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &compiled,
                       nullptr);
    return Statement(compiled);
  }

  // Before anything is written: is this ours? True: it is new.
  Result<bool> CheckKind() const {
    const Statement row = Compile(
        "SELECT (SELECT count(*) FROM sqlite_schema),"
        " (SELECT application_id FROM pragma_application_id),"
        " (SELECT user_version FROM pragma_user_version)");
    if (row == nullptr || sqlite3_step(row.get()) != SQLITE_ROW) {
      return Failure("cannot be opened");
    }
    const std::int64_t id = sqlite3_column_int64(row.get(), 1);
    const std::int64_t version = sqlite3_column_int64(row.get(), 2);
    if (sqlite3_column_int64(row.get(), 0) == 0 && id == 0 && version == 0) {
      return true;
    }
    if (id != kApplicationId) {
      return BadInput(
          fmt::format("{}: is another program's database (application id {:#x}); expected {:#x}",
                      path_, id, kApplicationId));
    }
    if (version != kVersion) {
      return BadInput(fmt::format("{}: is of version {}{}; expected version {}", path_, version,
                                  version > kVersion ? ", from a newer Trainyard" : "", kVersion));
    }
    return false;
  }

  Status Prepare() {
    append_ = Compile("INSERT INTO blocks (block, sha256) VALUES (?, ?)");
    const Statement row = Compile("SELECT times FROM opened");
    if (append_ == nullptr || row == nullptr || sqlite3_step(row.get()) != SQLITE_ROW) {
      return Failure("cannot be opened");
    }
    epoch_ = static_cast<std::uint64_t>(sqlite3_column_int64(row.get(), 0));
    return {};
  }

  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  // In this order: statements end before their database, and that before the lock.
  HeldFile lock_;
  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
  Statement append_;
  std::uint64_t epoch_ = 0;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const std::string& folder) {
  Result<HeldFile> held = HoldFolder(folder);
  if (!held.ok()) {
    return held.error();
  }
  // SQLite would give its file the mode that the umask leaves.
  if (const Status made = MakeFile(folder, kName); !made.ok()) {
    return made.error();
  }
  auto store = std::make_unique<SqliteStore>(std::move(held).value(), folder + "/" + kName);
  if (const Status opened = store->Open(); !opened.ok()) {
    return opened.error();
  }
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace trainyard
