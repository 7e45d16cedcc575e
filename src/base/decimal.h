// SPDX-License-Identifier: Apache-2.0
// Numbers as decimal text, appended to a line: exact, short, never with an exponent, and the same
// under every locale. Written for files of millions of rows.
#pragma once

#include <cstdint>
#include <string>

#include "trainyard/time.h"

namespace trainyard::base {

void AppendInteger(std::int64_t value, std::string& text);

// In seconds: "12", "12.5", "0.000001", "-0.5".
void AppendSeconds(Duration value, std::string& text);

// A quantity that is a sum of fractions, such as GPU-seconds, to the nearest millionth.
// REQUIRES: `value` is finite.
void AppendMillionths(double value, std::string& text);

}  // namespace trainyard::base
