// SPDX-License-Identifier: Apache-2.0
// The HTML report: one page with its data in it, which works offline. The page itself is made in
// web/ and handed in as text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "results/metrics/run_result.h"
#include "results/write/report_json.h"
#include "trainyard/status.h"

namespace trainyard::results {

// `html_template` with the JSON in the place of its __TRAINYARD_REPORT_DATA__; `<` is written as
// \u003c, so that no name can end the element. Errors: the template has no such place.
[[nodiscard]] Result<std::string> FillReport(std::string_view html_template, std::string_view json);

// Writes the report on `runs`, which share a trace, to `path`, and makes the directory for it.
// `command` is the command line that the page shows, `explanations` come as tables after the
// charts. Errors: no runs; the file cannot be written (the old one then remains).
[[nodiscard]] Status WriteReport(std::span<const RunResult> runs, const std::string& command,
                                 const std::string& path, std::string_view html_template,
                                 std::span<const ReportTable> explanations = {});

}  // namespace trainyard::results
