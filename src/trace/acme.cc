// SPDX-License-Identifier: Apache-2.0
// Job logs of the Acme clusters Seren and Kalos: docs/formats/acme.md.
#include <array>

#include "trace/log_format.h"

namespace trainyard {

const LogFormat& AcmeFormat() {
  static constexpr std::array<std::string_view, 8> kColumns{
      "job_id", "user", "gpu_num", "type", "state", "submit_time", "start_time", "end_time"};
  static constexpr LogFormat kFormat{
      .shown = {.name = "acme", .help = "Acme, Seren and Kalos (durations from the timestamps)"},
      .columns = kColumns,
      .open = [](const CsvHeader& table) -> Result<std::unique_ptr<LogRows>> {
        return ReadStamped(table, {.queue = "type"});
      }};
  return kFormat;
}

}  // namespace trainyard
