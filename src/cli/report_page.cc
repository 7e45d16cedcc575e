// SPDX-License-Identifier: Apache-2.0
#include "cli/report_page.h"

#include <cstddef>

// NOLINTBEGIN(readability-identifier-naming): symbols of the embedded page
extern "C" {
extern const char report_template_begin;
extern const char report_template_end;
}
// NOLINTEND(readability-identifier-naming)

namespace trainyard {

std::string_view ReportPage() {
  return {&report_template_begin,
          static_cast<std::size_t>(&report_template_end - &report_template_begin)};
}

}  // namespace trainyard
