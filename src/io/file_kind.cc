// SPDX-License-Identifier: Apache-2.0
#include "io/file_kind.h"

#include <fmt/format.h>

#include <array>

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

}  // namespace trainyard::io
