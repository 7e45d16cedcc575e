// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/scratch_folder.h"

namespace trainyard::store {
namespace {

std::unique_ptr<Store> Open(const std::string& folder) {
  auto store = OpenStore(folder);
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? std::move(store).value() : nullptr;
}

std::string MessageOf(const Status& status) {
  return status.ok() ? "no error" : status.error().message;
}

// The error of opening; the store, if there is one, is closed again.
Error ErrorOfOpening(const std::string& folder) {
  const auto store = OpenStore(folder);
  return store.ok() ? Failed("no error") : store.error();
}

std::vector<std::string> BlocksOf(const Store& store) {
  std::vector<std::string> blocks;
  EXPECT_EQ(MessageOf(store.Read(1,
                                 [&](std::string_view block) {
                                   blocks.emplace_back(block);
                                   return Status();
                                 })),
            "no error");
  return blocks;
}

void Fill(const std::string& folder, const std::vector<std::string>& blocks) {
  const auto store = Open(folder);
  for (const std::string& block : blocks) {
    ASSERT_EQ(MessageOf(store->Append(block)), "no error");
  }
}

// Changes a database behind the store's back.
void Sql(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

unsigned ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777U;
}

class SqliteStoreTest : public testing::Test {
 protected:
  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path() + "/state";
  const std::string file_ = folder_ + "/controller.db";
};

TEST_F(SqliteStoreTest, DoesNotCountARefusedOpening) {
  const auto store = Open(folder_);
  EXPECT_NE(ErrorOfOpening(folder_).message, "no error");
  EXPECT_EQ(store->epoch(), 1U);
}

TEST_F(SqliteStoreTest, HasOneHolderAtATime) {
  auto store = Open(folder_);
  EXPECT_EQ(ErrorOfOpening(folder_).message,
            folder_ + ": another controller has it open; stop that one or choose another folder");
  EXPECT_TRUE(store->Append("a").ok());
  store.reset();
  EXPECT_EQ(BlocksOf(*Open(folder_)).size(), 1U);
}

TEST_F(SqliteStoreTest, IsNotHeldByAProgramThatItsHolderStarted) {
  auto store = Open(folder_);
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  store.reset();
  // The child holds it until its exec.
  Error error;
  for (int tries = 0; tries < 500; ++tries) {
    error = ErrorOfOpening(folder_);
    if (error.message == "no error") {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(error.message, "no error");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(SqliteStoreTest, SaysThatAnotherProgramHasTheFileOpen) {
  Fill(folder_, {"a"});
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN; SELECT * FROM blocks", nullptr, nullptr, nullptr),
            SQLITE_OK);
  // In a process of its own: SQLite's locks do not keep apart two uses within one.
  const pid_t child = fork();
  if (child == 0) {
    const Error error = ErrorOfOpening(folder_);
    _exit(error.message == file_ + ": another program has it open; expected none" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  sqlite3_close(other);
}

void ExpectForItsOwnerOnly(const std::string& folder, mode_t mask) {
  const mode_t before = umask(mask);
  const auto store = Open(folder + "/deep");
  umask(before);
  EXPECT_EQ(ModeOf(folder), 0700U);
  EXPECT_EQ(ModeOf(folder + "/deep"), 0700U);
  for (const auto& file : std::filesystem::directory_iterator(folder + "/deep")) {
    EXPECT_EQ(ModeOf(file.path()), 0600U) << file.path();
  }
}

TEST_F(SqliteStoreTest, IsForItsOwnerOnlyWhateverTheUmask) {
  ExpectForItsOwnerOnly(scratch_.path() + "/open", 0);
  ExpectForItsOwnerOnly(scratch_.path() + "/closed", 0777);
}

TEST_F(SqliteStoreTest, OpensAFolderByARelativeNameThatLooksLikeAnAddress) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch_.path());
  Fill("file:state?mode=ro", {"a"});
  EXPECT_TRUE(std::filesystem::exists("file:state?mode=ro/controller.db"));
  EXPECT_EQ(BlocksOf(*Open("file:state?mode=ro/")).size(), 1U);
  std::filesystem::current_path(before);
}

TEST_F(SqliteStoreTest, FindsADamagedBlock) {
  Fill(folder_, {"first", "second", "third"});
  Sql(file_, "UPDATE blocks SET block = CAST('sacond' AS BLOB) WHERE number = 2");
  const auto store = Open(folder_);
  std::vector<std::string> taken;
  const Status read = store->Read(1, [&](std::string_view block) {
    taken.emplace_back(block);
    return Status();
  });
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(read.error().message.starts_with(file_ + ": block 2 is damaged; expected the SHA"))
      << read.error().message;
  EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(taken, std::vector<std::string>{"first"});
}

TEST_F(SqliteStoreTest, FindsAByteThatTheDiskChanged) {
  Fill(folder_, {"first", "second", "third"});
  auto bytes = [&] {
    std::ifstream in(file_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  const std::size_t at = bytes.find("third");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'b';
  std::ofstream(file_, std::ios::binary) << bytes;
  const Status read = Open(folder_)->Read(1, [](std::string_view) { return Status(); });
  EXPECT_TRUE(MessageOf(read).starts_with(file_ + ": block 3 is damaged")) << MessageOf(read);
}

TEST_F(SqliteStoreTest, FindsAMissingBlock) {
  Fill(folder_, {"first", "second", "third"});
  Sql(file_, "DELETE FROM blocks WHERE number = 2");
  const Status read = Open(folder_)->Read(1, [](std::string_view) { return Status(); });
  EXPECT_EQ(MessageOf(read), file_ + ": block 2 is missing; the next is 3");
}

std::vector<std::uint64_t> SnapshotsOf(const Store& store) {
  const Result<std::vector<std::uint64_t>> blocks = store.Snapshots();
  EXPECT_TRUE(blocks.ok());
  return blocks.ok() ? blocks.value() : std::vector<std::uint64_t>();
}

TEST_F(SqliteStoreTest, FindsADamagedSnapshot) {
  {
    const auto store = Open(folder_);
    ASSERT_TRUE(store->AddSnapshot({.block = 3, .state = "state", .pages = {"page"}}, 0).ok());
  }
  Sql(file_, "UPDATE snapshots SET state = CAST('stale' AS BLOB)");
  EXPECT_TRUE(Open(folder_)->Snapshot(3).error().message.starts_with(
      file_ + ": the snapshot at entry 3 is damaged; expected the SHA-256 "));
  Sql(file_, "UPDATE snapshots SET state = CAST('state' AS BLOB)");
  EXPECT_TRUE(Open(folder_)->Snapshot(3).ok());
  Sql(file_, "UPDATE pages SET page = CAST('wage' AS BLOB)");
  EXPECT_FALSE(Open(folder_)->Snapshot(3).ok());
}

TEST_F(SqliteStoreTest, OpensAFileFromBeforeThereWereSnapshots) {
  Fill(folder_, {"a"});
  Sql(file_, "DROP TABLE snapshots; DROP TABLE pages");
  const auto store = Open(folder_);
  EXPECT_TRUE(SnapshotsOf(*store).empty());
  EXPECT_TRUE(store->AddSnapshot({.block = 1, .state = "x", .pages = {}}, 0).ok());
}

// As a full disk does.
TEST_F(SqliteStoreTest, ASnapshotThatFailsLeavesTheOneBefore) {
  auto store = Open(folder_);
  ASSERT_TRUE(store->Append("first").ok());
  ASSERT_TRUE(store->AddSnapshot({.block = 1, .state = "one", .pages = {"p"}}, 0).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status large =
      store->AddSnapshot({.block = 2, .state = std::string(5'000'000, 'x'), .pages = {"q"}}, 1);
  const Status second = store->Append("second");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(large.ok());
  EXPECT_EQ(MessageOf(second), "no error");
  store.reset();
  store = Open(folder_);
  EXPECT_EQ(SnapshotsOf(*store), std::vector<std::uint64_t>{1});
  EXPECT_EQ(store->Snapshot(1).value().pages, std::vector<std::string>{"p"});
  EXPECT_TRUE(store->AddSnapshot({.block = 2, .state = "two", .pages = {}}, 1).ok());
}

TEST_F(SqliteStoreTest, SaysThatAPageIsDamaged) {
  Fill(folder_, std::vector<std::string>(50, std::string(3000, 'x')));
  {
    std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(std::size_t{4096} * 20);
    file << std::string(4096, '\xee');
  }
  const Status read = Open(folder_)->Read(1, [](std::string_view) { return Status(); });
  EXPECT_NE(MessageOf(read).find("damaged"), std::string::npos) << MessageOf(read);
  EXPECT_TRUE(MessageOf(read).starts_with(file_ + ": ")) << MessageOf(read);
}

TEST_F(SqliteStoreTest, RefusesAFileThatIsNoDatabase) {
  for (const std::string& bytes : {std::string("hello"), std::string(10000, 'x')}) {
    const std::string path = scratch_.Write("controller.db", bytes);
    const Error error = ErrorOfOpening(scratch_.path());
    EXPECT_EQ(error.message, path + ": is not a database; expected a controller's");
    EXPECT_EQ(error.code, ErrorCode::kBadInput);
    EXPECT_EQ(std::filesystem::file_size(path), bytes.size());
  }
}

TEST_F(SqliteStoreTest, RefusesTheDatabaseOfAnotherProgram) {
  const std::string path = scratch_.path() + "/controller.db";
  Sql(path, "CREATE TABLE blocks (number)");
  EXPECT_EQ(ErrorOfOpening(scratch_.path()).message,
            path + ": is another program's database (application id 0x0); expected 0x54726e79");
  Sql(path, "PRAGMA application_id = 17");
  EXPECT_EQ(ErrorOfOpening(scratch_.path()).message,
            path + ": is another program's database (application id 0x11); expected 0x54726e79");
}

TEST_F(SqliteStoreTest, RefusesAFileOfANewerVersion) {
  Fill(folder_, {"a"});
  Sql(file_, "PRAGMA user_version = 2");
  const Error error = ErrorOfOpening(folder_);
  EXPECT_EQ(error.message,
            file_ +
                ": is of version 2, from a newer Trainyard; expected version 1: use the "
                "Trainyard that has written it, or begin anew elsewhere. It is as it was");
  EXPECT_EQ(error.code, ErrorCode::kBadInput);
}

TEST_F(SqliteStoreTest, RefusesAFileInThePlaceOfTheFolder) {
  const std::string path = scratch_.Write("state", "text");
  EXPECT_EQ(ErrorOfOpening(path).message, path + ": is a file; expected a folder");
  EXPECT_EQ(ErrorOfOpening(path + "/deep").message, path + ": is a file; expected a folder");
}

TEST_F(SqliteStoreTest, RefusesAFolderInThePlaceOfTheFile) {
  std::filesystem::create_directories(file_);
  EXPECT_EQ(ErrorOfOpening(folder_).message, file_ + ": cannot be written: Is a directory");
}

TEST_F(SqliteStoreTest, SaysThatTheFolderCannotBeWritten) {
  chmod(scratch_.path().c_str(), 0555);
  const uid_t before = geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(before != 0 || seteuid(kNobody) == 0);
  const std::string there = ErrorOfOpening(scratch_.path()).message;
  const std::string below = ErrorOfOpening(folder_).message;
  ASSERT_TRUE(before != 0 || seteuid(before) == 0);
  chmod(scratch_.path().c_str(), 0700);
  EXPECT_EQ(there, scratch_.path() + ": cannot be written: Permission denied");
  EXPECT_EQ(below, folder_ + ": cannot be made: Permission denied");
}

// As a full disk does, a limit on the size of files makes writes fail in the middle of a block.
TEST_F(SqliteStoreTest, CanBeUsedOnAfterAFailedAppend) {
  auto store = Open(folder_);
  ASSERT_TRUE(store->Append("first").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status large = store->Append(std::string(5'000'000, 'x'));
  const Status second = store->Append("second");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(MessageOf(large), file_ + ": cannot be appended to: disk I/O error (File too large)");
  EXPECT_EQ(MessageOf(second), "no error");
  EXPECT_TRUE(store->Append("third").ok());
  const std::vector<std::string> expected = {"first", "second", "third"};
  EXPECT_EQ(BlocksOf(*store), expected);
  store.reset();
  EXPECT_EQ(BlocksOf(*Open(folder_)), expected);
}

TEST_F(SqliteStoreTest, SetsRoomAsideForALastAppend) {
  auto store = Open(folder_);
  struct stat status {};
  ASSERT_EQ(stat((folder_ + "/reserve").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 4 << 20);
  EXPECT_TRUE(store->UseReserve());
  EXPECT_FALSE(store->UseReserve());
  EXPECT_NE(stat((folder_ + "/reserve").c_str(), &status), 0);
  store.reset();
  store = Open(folder_);
  EXPECT_TRUE(store->UseReserve());
}

// Appends numbered blocks until it is killed, and writes each number to the pipe once it is safe.
[[noreturn]] void AppendForEver(const std::string& folder, int pipe) {
  auto store = OpenStore(folder);
  if (!store.ok()) {
    _exit(1);
  }
  std::uint64_t number = BlocksOf(*store.value()).size();
  while (store.value()->Append(std::to_string(number)).ok() &&
         write(pipe, &number, sizeof number) == sizeof number) {
    ++number;
  }
  _exit(1);
}

// Runs it in a child until it is killed after `time`, and gives the numbers that it acknowledged.
// `begun`: the time starts at the first of them.
std::vector<std::uint64_t> AppendUntilKilled(const std::string& folder, bool begun,
                                             std::chrono::microseconds time) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    AppendForEver(folder, ends[1]);
  }
  close(ends[1]);
  std::vector<std::uint64_t> numbers;
  std::uint64_t number = 0;
  const auto next = [&] { return read(ends[0], &number, sizeof number) == sizeof number; };
  if (begun && next()) {
    numbers.push_back(number);
  }
  std::this_thread::sleep_for(time);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
  while (next()) {
    numbers.push_back(number);
  }
  close(ends[0]);
  return numbers;
}

std::vector<std::string> Numbers(std::size_t count) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(std::to_string(i));
  }
  return numbers;
}

TEST_F(SqliteStoreTest, KeepsEveryAcknowledgedBlockWhenKilled) {
  std::mt19937 random(20240601);
  std::size_t before = 0;
  std::uint64_t epoch = 0;
  for (int round = 0; round < 20; ++round) {
    const std::chrono::microseconds time(random() % 30'000);
    // Every other round may be killed while it opens.
    const auto acknowledged = AppendUntilKilled(folder_, round % 2 == 1, time);
    const auto store = Open(folder_);
    ASSERT_NE(store, nullptr);
    EXPECT_GT(store->epoch(), epoch);
    const auto blocks = BlocksOf(*store);
    EXPECT_EQ(blocks, Numbers(blocks.size()));
    EXPECT_GE(blocks.size(), before + acknowledged.size());
    EXPECT_LE(blocks.size(), before + acknowledged.size() + 1);  // one may have been on its way
    EXPECT_TRUE(acknowledged.empty() || acknowledged.front() == before);
    before = blocks.size();
    epoch = store->epoch();
  }
  EXPECT_GE(before, 10U);
}

}  // namespace
}  // namespace trainyard::store
