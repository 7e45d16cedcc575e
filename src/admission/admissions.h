// SPDX-License-Identifier: Apache-2.0
// One entry per admission file.
#pragma once

#include "admission/catalog.h"

namespace trainyard {

[[nodiscard]] AdmissionEntry AllEntry();
[[nodiscard]] AdmissionEntry DeadlineEntry();
[[nodiscard]] AdmissionEntry LoadEntry();

}  // namespace trainyard
