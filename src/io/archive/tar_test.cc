// SPDX-License-Identifier: Apache-2.0
#include "io/archive/tar.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <utility>

#include "io/file.h"
#include "io/text_stream.h"
#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

// What `tar` makes of files with these names and contents; a name that ends in '/' is a folder.
std::string Tar(std::initializer_list<std::pair<const char*, std::string_view>> files) {
  const ScratchFolder folder;
  const std::string result = folder.path() + "/t.tar";
  std::string command =
      "tar --format=ustar --no-recursion -C '" + folder.path() + "' -cf '" + result + "'";
  for (const auto& [name, content] : files) {
    const std::filesystem::path path = folder.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    if (path.has_filename()) {
      std::ofstream(path) << content;
    }
    command += std::string(" ") + name;
  }
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return ReadBytes(result).value();
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
