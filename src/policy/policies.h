// SPDX-License-Identifier: Apache-2.0
// One entry per policy file; the catalogue collects them.
#pragma once

#include "policy/catalog.h"

namespace trainyard {

[[nodiscard]] PolicyEntry AntManEntry();
[[nodiscard]] PolicyEntry AutoEntry();
[[nodiscard]] PolicyEntry ChronusEntry();
[[nodiscard]] PolicyEntry DrfEntry();
[[nodiscard]] PolicyEntry EdfEntry();
[[nodiscard]] PolicyEntry ElasticEdfEntry();
[[nodiscard]] PolicyEntry ElasticFlowEntry();
[[nodiscard]] PolicyEntry FifoEntry();
[[nodiscard]] PolicyEntry FjfEntry();
[[nodiscard]] PolicyEntry FtfEntry();
[[nodiscard]] PolicyEntry GandivaPolicyEntry();
[[nodiscard]] PolicyEntry LasEntry();
[[nodiscard]] PolicyEntry MuriLEntry();
[[nodiscard]] PolicyEntry MuriSEntry();
[[nodiscard]] PolicyEntry OptimusEntry();
[[nodiscard]] PolicyEntry SjfEntry();
[[nodiscard]] PolicyEntry SrsfEntry();
[[nodiscard]] PolicyEntry SrtfEntry();
[[nodiscard]] PolicyEntry SynergyOptEntry();
[[nodiscard]] PolicyEntry TetrisEntry();
[[nodiscard]] PolicyEntry ThemisEntry();
[[nodiscard]] PolicyEntry TiresiasEntry();
[[nodiscard]] PolicyEntry TorchloaderEntry();

}  // namespace trainyard
