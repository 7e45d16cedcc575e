// SPDX-License-Identifier: Apache-2.0
#include "io/text_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/try.h"
#include "io/text_stream.h"

namespace trainyard::io {
namespace {

using namespace std::string_view_literals;

struct BinaryKind {
  std::string_view magic;
  std::string_view name;   // with its article
  std::string_view how{};  // the function of pandas that reads it
  std::string_view what_to_do{};
};

constexpr std::array kKinds{
    BinaryKind{.magic = "PAR1"sv, .name = "a Parquet file", .how = "read_parquet"},
    BinaryKind{.magic = "ARROW1"sv, .name = "an Arrow (Feather) file", .how = "read_feather"},
    BinaryKind{.magic = "FEA1"sv, .name = "a Feather file", .how = "read_feather"},
    BinaryKind{.magic = "ORC"sv, .name = "an ORC file", .how = "read_orc"},
    BinaryKind{.magic = "\x89HDF\r\n\x1a\n"sv, .name = "an HDF5 file", .how = "read_hdf"},
    BinaryKind{.magic = "\xD0\xCF\x11\xE0"sv, .name = "an Excel workbook", .how = "read_excel"},
    BinaryKind{.magic = "PK\x03\x04"sv,
               .name = "a zip archive or an Excel workbook (.xlsx)",
               .what_to_do = "`unzip` it, or save the sheet as CSV in UTF-8"},
    BinaryKind{.magic = "SQLite format 3\0"sv,
               .name = "an SQLite database",
               .what_to_do = "export a table: `sqlite3 -header -csv FILE 'select * from TABLE'`"},
    BinaryKind{.magic = "\x93NUMPY"sv, .name = "a NumPy array", .what_to_do = "numpy.savetxt"},
    BinaryKind{.magic = "Obj\x01"sv, .name = "an Avro file", .what_to_do = "convert it"},
    BinaryKind{.magic = "\x80\x04\x95"sv, .name = "a Python pickle", .how = "read_pickle"},
    BinaryKind{.magic = "\x80\x05\x95"sv, .name = "a Python pickle", .how = "read_pickle"},
    BinaryKind{.magic = "BZh"sv, .name = "packed with bzip2", .what_to_do = "`bunzip2` it"},
    BinaryKind{.magic = "\xFD"
                        "7zXZ\0"sv,
               .name = "packed with xz",
               .what_to_do = "`unxz` it"},
    BinaryKind{.magic = "7z\xBC\xAF\x27\x1C"sv, .name = "a 7z archive", .what_to_do = "`7z x` it"},
    BinaryKind{
        .magic = "\x04\x22\x4D\x18"sv, .name = "packed with lz4", .what_to_do = "`unlz4` it"},
    BinaryKind{.magic = "%PDF-"sv, .name = "a PDF document"},
    BinaryKind{.magic = "\x7F"
                        "ELF"sv,
               .name = "a program"},
    BinaryKind{.magic = "\x89PNG"sv, .name = "a picture (PNG)"},
};

Error BadText(const std::string& path, std::int64_t line, std::string_view what) {
  return BadInput(fmt::format("{}:{}: {}", path, line, what));
}

bool IsContinuation(unsigned char byte) { return (byte & 0xC0U) == 0x80U; }

// The length of the UTF-8 sequence that `text` begins with, or 0 where it is none.
std::size_t SequenceLength(std::string_view text) {
  const auto at = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const unsigned char first = at(0);
  const unsigned char second = at(1);
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xC2 || first > 0xF4 || !IsContinuation(second)) {
    return 0;
  }
  if (first < 0xE0) {
    return 2;
  }
  // Overlong forms, surrogates and numbers over U+10FFFF are not UTF-8.
  const bool out_of_range = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                            (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  if (out_of_range || !IsContinuation(at(2))) {
    return 0;
  }
  if (first < 0xF0) {
    return 3;
  }
  return IsContinuation(at(3)) ? 4 : 0;
}

// Position of the first byte that is not UTF-8, or npos.
std::size_t FindNotUtf8(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::size_t i = 0;
  while (i < text.size()) {
    std::uint64_t eight = 0;
    if (i + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & kHighBits) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const std::size_t length = SequenceLength(text.substr(i, 4));
    if (length == 0) {
      return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

// Position of the first carriage return without a line feed behind it, or npos.
std::size_t FindLoneReturn(std::string_view text) {
  for (std::size_t i = text.find('\r'); i != std::string_view::npos; i = text.find('\r', i + 1)) {
    if (i + 1 < text.size() && text[i + 1] != '\n') {
      return i;
    }
  }
  return std::string_view::npos;
}

// Number of the first line over kMaxLineBytes, or 0.
std::int64_t FindLongLine(std::string_view text) {
  std::int64_t line = 1;
  for (std::size_t start = 0; start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (end - start > kMaxLineBytes) {
      return line;
    }
    start = end + 1;
  }
  return 0;
}

Status CheckAnyCharacters(const std::string& path, std::string_view text, std::int64_t first_line) {
  constexpr auto kNone = std::string_view::npos;
  const auto line_at = [&](std::size_t position) {
    return first_line +
           std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n');
  };
  if (first_line == 1 && (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))) {
    return BadText(path, 1,
                   "not UTF-8 (it starts with a UTF-16 byte order mark); expected UTF-8 text");
  }
  if (const std::size_t at = text.find('\0'); at != kNone) {
    return BadText(path, line_at(at), "a NUL byte; expected text");
  }
  if (const std::size_t at = FindNotUtf8(text); at != kNone) {
    return BadText(path, line_at(at), "not UTF-8; expected UTF-8 text");
  }
  if (const std::size_t at = FindLoneReturn(text); at != kNone) {
    return BadText(path, line_at(at),
                   "a carriage return within a line; expected lines that end in LF or CRLF");
  }
  return {};
}

}  // namespace

std::string KindOfBinary(const std::string& path, std::string_view head) {
  for (const BinaryKind& kind : kKinds) {
    if (!head.starts_with(kind.magic)) {
      continue;
    }
    if (!kind.how.empty()) {
      return fmt::format(
          "{}; expected text such as CSV: python3 -c \"import pandas; "
          "pandas.{}('{}').to_csv('FILE.csv', index=False)\"",
          kind.name, kind.how, path);
    }
    return fmt::format("{}; expected text such as CSV, plain or packed with gzip or zstd{}{}",
                       kind.name, kind.what_to_do.empty() ? "" : ": ", kind.what_to_do);
  }
  return {};
}

std::string_view Beginning(std::string_view text) {
  constexpr std::string_view kBefore = "\xEF\xBB\xBF \t\r\n";
  return text.substr(std::min(text.find_first_not_of(kBefore), text.size()));
}

bool IsUtf8(std::string_view text) { return FindNotUtf8(text) == std::string_view::npos; }

Status CheckCharacters(const std::string& path, std::string_view text, std::int64_t first_line) {
  Status status = CheckAnyCharacters(path, text, first_line);
  if (!status.ok() && first_line == 1) {
    if (const std::string kind = KindOfBinary(path, text); !kind.empty()) {
      return BadInput(path + ": " + kind);
    }
  }
  return status;
}

Status CheckText(const std::string& path, std::string_view text, std::int64_t first_line) {
  RETURN_IF_ERROR(CheckCharacters(path, text, first_line));
  if (const std::int64_t line = FindLongLine(text); line != 0) {
    return BadText(path, first_line + line - 1,
                   fmt::format("a line over {} bytes; expected shorter lines", kMaxLineBytes));
  }
  return {};
}

}  // namespace trainyard::io
