// SPDX-License-Identifier: Apache-2.0
// One entry per policy file; the catalogue collects them.
#pragma once

#include "policy/catalog.h"

namespace trainyard {

[[nodiscard]] PolicyEntry EdfEntry();
[[nodiscard]] PolicyEntry ElasticEdfEntry();
[[nodiscard]] PolicyEntry ElasticFlowEntry();
[[nodiscard]] PolicyEntry FifoEntry();
[[nodiscard]] PolicyEntry FjfEntry();
[[nodiscard]] PolicyEntry GandivaPolicyEntry();
[[nodiscard]] PolicyEntry LasEntry();
[[nodiscard]] PolicyEntry SjfEntry();
[[nodiscard]] PolicyEntry SrsfEntry();
[[nodiscard]] PolicyEntry SrtfEntry();
[[nodiscard]] PolicyEntry ThemisEntry();
[[nodiscard]] PolicyEntry TiresiasEntry();

}  // namespace trainyard
