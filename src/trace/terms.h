// SPDX-License-Identifier: Apache-2.0
// Arrays and dependencies of traces, as the engine takes them.
#pragma once

#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// A row that states an array becomes one for each task, NAME_INDEX; the names of jobs in
// dependencies become the numbers of their rows, from 1 on. Nothing happens to a trace without
// either. Errors, with file and line: a text that is no array or dependency; a job that no earlier
// row names.
[[nodiscard]] Status ResolveTerms(Trace& trace);

}  // namespace trainyard::trace
