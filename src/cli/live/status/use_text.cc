// SPDX-License-Identifier: Apache-2.0
#include "cli/live/status/use_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/live/client_calls.h"

namespace trainyard::cli {

std::string UseText(const v1::JobUse& use) {
  constexpr double kGib = 1 << 30;
  constexpr double kPercent = 100;
  std::string text = base::ShortDuration(use.cpu_s()) + " of CPU time";
  if (use.cpu_s_given() > 0) {
    text += fmt::format(" of the {} given ({:.0f} %)", base::ShortDuration(use.cpu_s_given()),
                        kPercent * use.cpu_s() / use.cpu_s_given());
  }
  if (use.peak_memory() > 0) {
    text += fmt::format(
        "; at most {:.3g}{} GiB of memory, on {}", static_cast<double>(use.peak_memory()) / kGib,
        use.memory_given() > 0
            ? fmt::format(" of {:.3g}", static_cast<double>(use.memory_given()) / kGib)
            : "",
        Printable(use.peak_node()));
  }
  return text;
}

}  // namespace trainyard::cli
