// SPDX-License-Identifier: Apache-2.0
// The version of the program. CMakeLists.txt reads it from here.
#pragma once

#define TRAINYARD_VERSION "0.1.0"
