// SPDX-License-Identifier: Apache-2.0
// Lines of sacct whose free texts (names of jobs, comments) hold the separator: which fields belong
// together, as far as the other columns decide it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::trace {

class SacctLines {
 public:
  // The columns of the header.
  explicit SacctLines(const std::vector<std::string>& names);

  // Joins fields of free texts, so that there is one for each column and all others are of their
  // kind. Leaves them where there is no way, or where columns other than free texts would differ
  // between several ways. `fields` are parts of one line.
  void Mend(std::vector<std::string_view>& fields) const;

 private:
  enum class Kind : std::uint8_t {
    kAny,
    kFree,   // what users write
    kId,     // "12", "12_3", "12_[3-7]", "12+1", "12.batch"
    kWord,   // names without blanks
    kTime,   // "2024-03-01T10:00:00", or none
    kSpan,   // "1-02:03:04", UNLIMITED
    kCount,  // digits
    kState,  // "COMPLETED", "CANCELLED by 5"
    kTres,   // "cpu=1,gres/gpu=2"
    kExit    // "0:0"
  };
  struct Search;

  [[nodiscard]] static Kind KindOf(std::string_view name);
  [[nodiscard]] static bool IsOfKind(std::string_view field, Kind kind);
  // Distributes `surplus` fields over the free columns from `column` on.
  void Try(Search& search, std::size_t column, std::size_t surplus) const;
  void Judge(Search& search) const;

  std::vector<Kind> kinds_;
};

}  // namespace trainyard::trace
