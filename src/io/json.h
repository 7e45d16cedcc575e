// SPDX-License-Identifier: Apache-2.0
// nlohmann's JSON values. Their code is compiled once, in json.cc: it is large, and every file that
// includes this header would otherwise compile it again.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
