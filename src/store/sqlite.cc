// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.h"

#include <fmt/core.h>

#include <system_error>

#include "base/try.h"

namespace trainyard::store {
namespace {

// Never a null pointer: to SQLite that is NULL, not an empty value.
const char* BytesOf(std::string_view bytes) { return bytes.empty() ? "" : bytes.data(); }

}  // namespace

bool BindText(const SqliteStatement& statement, int index, std::string_view text) {
  return sqlite3_bind_text64(statement.get(), index, BytesOf(text), text.size(), SQLITE_STATIC,
                             SQLITE_UTF8) == SQLITE_OK;
}

bool BindBlob(const SqliteStatement& statement, int index, std::string_view bytes) {
  return sqlite3_bind_blob64(statement.get(), index, BytesOf(bytes), bytes.size(), SQLITE_STATIC) ==
         SQLITE_OK;
}

std::string_view Column(const SqliteStatement& statement, int index) {
  const void* const bytes = sqlite3_column_blob(statement.get(), index);
  const int size = sqlite3_column_bytes(statement.get(), index);
  return bytes == nullptr
             ? std::string_view()
             : std::string_view(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

Status SqliteFile::Open(const std::string& path, const SqliteKind& kind) {
  path_ = path;
  kind_ = kind;
  // With a "./", as SQLite takes a name that begins with "file:" for an address.
  const std::string name = path.starts_with('/') ? path : "./" + path;
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(name.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);  // also after a failure, to hold its reason
  if (code != SQLITE_OK) {
    return Failure("cannot be opened");
  }
  sqlite3_extended_result_codes(opened, 1);
  // Exclusive: no other program can write or hold up a commit, and no memory is shared, which
  // network file systems cannot do.
  RETURN_IF_ERROR(Run("PRAGMA locking_mode = EXCLUSIVE"));
  ASSIGN_OR_RETURN(const bool fresh, CheckKind());
  RETURN_IF_ERROR(Run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"));
  return Run(fresh ? fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; {}"
                                 "; COMMIT",
                                 kind.application_id, kind.version, kind.create)
                   : std::string("COMMIT"));
}

Error SqliteFile::Failure(std::string_view what) const {
  const std::string why = sqlite3_errmsg(database_.get());
  switch (sqlite3_errcode(database_.get()) & 0xff) {
    case SQLITE_NOTADB:
      return BadInput(fmt::format("{}: is not a database; expected {}", path_, kind_.owner));
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

Status SqliteFile::Run(const std::string& sql, std::string_view what) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : Failure(what);
}

SqliteStatement SqliteFile::Compile(std::string_view sql) const {
  sqlite3_stmt* compiled = nullptr;
  sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &compiled, nullptr);
  return SqliteStatement(compiled);
}

Result<bool> SqliteFile::CheckKind() const {
  const SqliteStatement row = Compile(
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
  if (id != kind_.application_id) {
    return BadInput(
        fmt::format("{}: is another program's database (application id {:#x}); expected {:#x}",
                    path_, id, kind_.application_id));
  }
  if (version != kind_.version) {
    return BadInput(fmt::format(
        "{}: is of version {}, from {} Trainyard; expected version {}: use the Trainyard that has "
        "written it, or begin anew elsewhere. It is as it was",
        path_, version, version > kind_.version ? "a newer" : "an older", kind_.version));
  }
  return false;
}

}  // namespace trainyard::store
