// SPDX-License-Identifier: Apache-2.0
#include "store/results.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/try.h"
#include "io/descriptor.h"
#include "store/sqlite.h"

namespace trainyard::store {
namespace {

constexpr SqliteKind kKind{.application_id = 0x54726e72,  // "Trnr"
                           .version = 1,
                           .owner = "results of an experiment",
                           .create = R"(
  CREATE TABLE runs (digest TEXT PRIMARY KEY, status TEXT NOT NULL, reason TEXT NOT NULL,
    metrics TEXT NOT NULL, extra TEXT NOT NULL, program TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE cells (position INTEGER PRIMARY KEY, id TEXT NOT NULL, digest TEXT NOT NULL,
    status TEXT NOT NULL, reason TEXT NOT NULL, axes TEXT NOT NULL) STRICT)"};

constexpr std::array kRunTexts{&StoredRun::digest,  &StoredRun::status, &StoredRun::reason,
                               &StoredRun::metrics, &StoredRun::extra,  &StoredRun::program};
constexpr std::array kCellTexts{&StoredCell::id, &StoredCell::digest, &StoredCell::status,
                                &StoredCell::reason, &StoredCell::axes};

class SqliteResults final : public ResultStore {
 public:
  Status Open(const std::string& path) { return database_.Open(path, kKind); }

  Result<std::vector<StoredRun>> Runs() const override {
    const SqliteStatement rows = database_.Compile(
        "SELECT digest, status, reason, metrics, extra, program FROM runs ORDER BY digest");
    std::vector<StoredRun> runs;
    int code = SQLITE_ERROR;
    while (rows != nullptr && (code = sqlite3_step(rows.get())) == SQLITE_ROW) {
      StoredRun& run = runs.emplace_back();
      for (std::size_t i = 0; i < kRunTexts.size(); ++i) {
        run.*kRunTexts[i] = Column(rows, static_cast<int>(i));
      }
    }
    if (code != SQLITE_DONE) {
      return database_.Failure("cannot be read");
    }
    return runs;
  }

  Status Put(std::span<const StoredRun> runs) override {
    return InOneTransaction([&] {
      return Insert("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", runs, kRunTexts);
    });
  }

  Status Clear() override { return database_.Run("DELETE FROM runs"); }

  Status SetCells(std::span<const StoredCell> cells, std::span<const std::string> axes,
                  std::span<const std::string> metrics) override {
    return InOneTransaction([&]() -> Status {
      RETURN_IF_ERROR(database_.Run("DELETE FROM cells; DROP VIEW IF EXISTS results"));
      RETURN_IF_ERROR(
          Insert("INSERT INTO cells (id, digest, status, reason, axes) VALUES (?, ?, ?, ?, ?)",
                 cells, kCellTexts));
      return database_.Run(ViewOf(axes, metrics));
    });
  }

 private:
  // A name between quotes that SQL takes.
  static std::string Quoted(const std::string& name, char quote) {
    std::string text(1, quote);
    for (const char c : name) {
      text.append(c == quote ? 2 : 1, c);
    }
    return text + quote;
  }

  static std::string ViewOf(std::span<const std::string> axes,
                            std::span<const std::string> metrics) {
    std::string columns;
    const auto add = [&columns](const std::string& table, const std::string& name) {
      columns += fmt::format(", json_extract({}, {}) AS {}", table,
                             Quoted("$.\"" + name + "\"", '\''), Quoted(name, '"'));
    };
    for (const std::string& axis : axes) {
      add("cells.axes", axis);
    }
    columns +=
        ", coalesce(runs.status, nullif(cells.status, '')) AS status"
        ", coalesce(runs.reason, cells.reason) AS reason";
    for (const std::string& metric : metrics) {
      add("runs.metrics", metric);
    }
    return fmt::format(
        "CREATE VIEW results AS SELECT cells.position, cells.id{} FROM cells "
        "LEFT JOIN runs USING (digest) ORDER BY cells.position",
        columns);
  }

  template <typename Row, typename Texts>
  Status Insert(std::string_view sql, std::span<const Row> rows, const Texts& texts) {
    const SqliteStatement insert = database_.Compile(sql);
    bool good = insert != nullptr;
    for (std::size_t at = 0; good && at < rows.size(); ++at) {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        good = good && BindText(insert, static_cast<int>(i) + 1, rows[at].*texts[i]);
      }
      good = good && sqlite3_step(insert.get()) == SQLITE_DONE;
      good = good && sqlite3_reset(insert.get()) == SQLITE_OK;
    }
    return good ? Status() : database_.Failure("cannot be written");
  }

  template <typename Work>
  Status InOneTransaction(const Work& work) {
    RETURN_IF_ERROR(database_.Run("BEGIN IMMEDIATE"));
    Status done = work();
    if (done.ok()) {
      done = database_.Run("COMMIT");
    }
    if (!done.ok()) {
      // The first failure is the one to report.
      if (const Status undone = database_.Run("ROLLBACK"); !undone.ok()) {
        return done;
      }
    }
    return done;
  }

  SqliteFile database_;
};

}  // namespace

Result<std::unique_ptr<ResultStore>> OpenResults(const std::string& path) {
  // SQLite would give no reason why it cannot make the file.
  const io::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.open()) {
    return Failed(
        fmt::format("{}: cannot be written: {}", path, std::generic_category().message(errno)));
  }
  auto results = std::make_unique<SqliteResults>();
  RETURN_IF_ERROR(results->Open(path));
  return std::unique_ptr<ResultStore>(std::move(results));
}

}  // namespace trainyard::store
