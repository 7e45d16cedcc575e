// SPDX-License-Identifier: Apache-2.0
// Job logs of the Helios clusters (cluster_log.csv): docs/formats/helios.md.
#include <array>

#include "trace/log_format.h"

namespace trainyard {

const LogFormat& HeliosFormat() {
  static constexpr std::array<std::string_view, 8> kColumns{
      "job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time"};
  static constexpr LogFormat kFormat{
      .shown = {.name = "helios",
                .help = "Helios cluster_log.csv (jobs without GPUs are left out)"},
      .columns = kColumns,
      .open = [](const CsvHeader& table) -> Result<std::unique_ptr<LogRows>> {
        return ReadStamped(table, {.queue = "vc"});
      }};
  return kFormat;
}

}  // namespace trainyard
