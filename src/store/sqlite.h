// SPDX-License-Identifier: Apache-2.0
// One SQLite file that a process holds alone. For this folder only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::store {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// Whether it worked. The bytes must live until the statement is reset.
[[nodiscard]] bool BindText(const SqliteStatement& statement, int index, std::string_view text);
[[nodiscard]] bool BindBlob(const SqliteStatement& statement, int index, std::string_view bytes);

// A value of the present row, valid until the next step.
[[nodiscard]] std::string_view Column(const SqliteStatement& statement, int index);

// What a file is for.
struct SqliteKind {
  std::int64_t application_id = 0;
  std::int64_t version = 0;
  const char* owner = "";   // in messages: "expected a controller's"
  const char* create = "";  // SQL that makes the tables of a new file
};

// Every error names the file.
class SqliteFile {
 public:
  // `path` must exist; an empty file becomes one of this kind. What is committed survives a crash
  // of the machine. Never waits. Errors: another program has it open (kFailed); it is damaged, or
  // of another kind or version (kBadInput).
  [[nodiscard]] Status Open(const std::string& path, const SqliteKind& kind);

  // The failure of the last call of SQLite.
  [[nodiscard]] Error Failure(std::string_view what) const;
  // `what` could not be done, for the message.
  [[nodiscard]] Status Run(const std::string& sql, std::string_view what = "cannot be opened");
  // Null on failure.
  [[nodiscard]] SqliteStatement Compile(std::string_view sql) const;

 private:
  // Before anything is written: is this ours? True: it is new.
  [[nodiscard]] Result<bool> CheckKind() const;

  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  std::string path_;
  SqliteKind kind_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace trainyard::store
