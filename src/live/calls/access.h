// SPDX-License-Identifier: Apache-2.0
// Who may do what. Pure functions of the caller and the job's owner.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/live.pb.h"

namespace trainyard::live {

// What somebody wants of a job.
enum class Touch : unsigned char {
  kSee,     // that it is there, and how it stands
  kChange,  // cancel, resize
  kRead,    // what it has written
  kEnter,   // run something beside it, as its user
};

// A caller who is not known may do everything: only a transport that asks nobody lets one in.
[[nodiscard]] bool MayTouch(const v1::ClientRequest& request, const v1::JobRequest& job,
                            Touch touch);
[[nodiscard]] bool MayDrain(const v1::ClientRequest& request);
// Whether the job may be submitted under the name of that user.
[[nodiscard]] bool MayNameUser(const v1::ClientRequest& request, std::string_view user);

// "ann (uid 1001)"; unknown: empty.
[[nodiscard]] std::string CallerText(const v1::ClientRequest& request);
// "ann (uid 1001, operator)"; unknown: empty.
[[nodiscard]] std::string ChangerText(const v1::ClientRequest& request);
// Whether the caller may undo what somebody with such a text has done: the same user, or one with
// no lower role. Of an empty text: yes.
[[nodiscard]] bool MayUndo(const v1::ClientRequest& request, std::string_view changer);

}  // namespace trainyard::live
