// SPDX-License-Identifier: Apache-2.0
#include "io/archive/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "io/file.h"
#include "io/text_stream.h"
#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

// Name and content of each file; a name that ends in '/' is a folder.
std::string Tar(std::initializer_list<std::pair<const char*, std::string_view>> files) {
  std::string bytes(1 << 20, '\0');
  std::size_t used = 0;
  archive* const tar = archive_write_new();
  archive_write_set_format_ustar(tar);
  archive_write_open_memory(tar, bytes.data(), bytes.size(), &used);
  for (const auto& [name, content] : files) {
    archive_entry* const entry = archive_entry_new();
    const bool is_folder = std::string_view(name).ends_with('/');
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_write_header(tar, entry);
    archive_write_data(tar, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(tar);
  archive_write_free(tar);
  bytes.resize(used);
  return bytes;
}

std::string ErrorOf(const std::string& bytes) {
  const ScratchFolder folder;
  return ErrorFrom("t.tar", ReadFile(folder.Write("t.tar", bytes)));
}

TEST(TarTest, TheOneFileIsTheContentHoweverItIsPacked) {
  const ScratchFolder folder;
  const std::string tar = Tar({{"data/", ""}, {"data/._jobs.csv", "x"}, {"data/jobs.csv", "a\n1"}});
  EXPECT_EQ(ReadFile(folder.Write("a.tar", tar)).value(), "a\n1");
  EXPECT_EQ(ReadFile(folder.Write("a.tar.gz", folder.Gzip(tar))).value(), "a\n1");
}

TEST(TarTest, IsReadInBlocksAndDigestedWhole) {
  const ScratchFolder folder;
  std::string text;
  while (text.size() < 700'000) {
    text += std::to_string(text.size()) + "\n";
  }
  const std::string path = folder.Write("a.tar", Tar({{"jobs.csv", text}}));
  Result<TextStream> stream = TextStream::Open(path);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  std::string read;
  while (!stream.value().block().empty()) {
    read += stream.value().block();
    ASSERT_TRUE(stream.value().Next().ok());
  }
  EXPECT_EQ(read, text);
  EXPECT_EQ(stream.value().sha256(), Sha256OfFile(path).value());
}

TEST(TarTest, SeveralFilesAreRefusedByName) {
  EXPECT_EQ(ErrorOf(Tar({{"a.csv", "1"}, {"b.csv", "2"}})),
            "t.tar: a tar of several files ('a.csv', 'b.csv', ...); expected one file; unpack it "
            "and name the one");
  EXPECT_EQ(ErrorOf(Tar({{"data/", ""}})), "t.tar: a tar without a file; expected one");
}

TEST(TarTest, ATruncatedTarIsRefused) {
  const std::string content(2000, 'x');
  const std::string tar = Tar({{"a.csv", content}});
  EXPECT_TRUE(ErrorOf(tar.substr(0, 1200)).starts_with("t.tar: corrupt tar ("));
}

TEST(TarTest, TextIsNoTar) {
  EXPECT_FALSE(IsTar(std::string(1000, 'u')));
  EXPECT_FALSE(IsTar("ustar"));
  EXPECT_TRUE(IsTar(Tar({{"a.csv", "1"}})));
}

}  // namespace
}  // namespace trainyard::io
