// SPDX-License-Identifier: Apache-2.0
// What is to be said about a trace that has been read.
#pragma once

#include <vector>

#include "trace/trace.h"

namespace trainyard {

// On stderr: the rows that were passed over and the jobs that are not quite as recorded. Nothing
// where there are none.
void ReportReading(const Trace& trace);
// Likewise, of a trace whose jobs were handed out.
void ReportReading(const TraceFacts& facts, const std::vector<RowGroup>& skipped);

}  // namespace trainyard
