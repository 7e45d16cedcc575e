// SPDX-License-Identifier: Apache-2.0
// The version of the program. CMakeLists.txt reads it from here. A plug-in is loaded only by a
// program of the same version (TRAINYARD_PLUGIN_STAMP in trainyard/plugin.h).
#pragma once

#define TRAINYARD_VERSION "0.4.0"
