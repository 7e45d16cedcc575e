// SPDX-License-Identifier: Apache-2.0
#include "report/run_result.h"

namespace trainyard {

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted:
      return "completed";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kUnfinished:
      return "unfinished";
  }
  return "";
}

}  // namespace trainyard
