// SPDX-License-Identifier: Apache-2.0
// One entry per tuning file.
#pragma once

#include "tuning/catalog.h"

namespace trainyard {

[[nodiscard]] TuningEntry LoaderTuningEntry();

}  // namespace trainyard
