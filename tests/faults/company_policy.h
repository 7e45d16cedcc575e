// SPDX-License-Identifier: Apache-2.0
// For the fault simulation: a policy under which everything happens that jobs on shared GPUs can
// meet, and a pace that depends on their company.
#pragma once

#include <memory>

#include "trainyard/component_entry.h"
#include "trainyard/snapshot.h"

namespace trainyard {

// A third of the jobs has its GPUs for itself, a third is interleaved in pairs of the same size,
// and a third is collocated, two on a GPU. The first that does not fit holds what is free and waits
// for the rest. Loader workers of a node are divided among those collocated there.
[[nodiscard]] ComponentEntry CompanyEntry();

// The same, but at times it takes the GPUs of a job away for nobody: a bug that the simulation must
// find.
[[nodiscard]] ComponentEntry MoodyCompanyEntry();

// Work is the declared duration. Half as fast in company.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeCompanyModel();

}  // namespace trainyard
