// SPDX-License-Identifier: Apache-2.0
// The catalogue of originals, empty.
#include "originals/originals.h"

namespace trainyard {

std::span<const ComponentEntry> Originals() { return {}; }

}  // namespace trainyard
