// SPDX-License-Identifier: Apache-2.0
// The job protocol: what a training job and Trainyard may tell each other while it runs. A job need
// not speak it; it then gets SIGTERM as its notice, and its progress is not known.
//
// The environment variable TRAINYARD_SOCKET holds the path of a Unix stream socket. Any process of
// the job may connect to it, any number of times (64 at once for each node). Both sides send lines
// of UTF-8 text that end with a line feed and have at most 4096 bytes.
//
// From the job:
//
//   progress ITERATIONS    so many iterations are done, those of earlier attempts included
//   checkpoint ITERATIONS  so many are safe on disk: where the next attempt will begin
//   finished               the training has reached its end; without it, all workers leaving with
//                          exit status 0 says the same, unless notice was given
//   lease?                 may the job go on? answered by a `lease` line
//   no-signals             the job heeds `stop` lines: no SIGTERM with the notice, on this node
//
// To the job:
//
//   stop SECONDS           notice: save a checkpoint, say so and leave; whatever is left after so
//                          many seconds is killed. Sent to every connection when notice is given,
//                          on connecting later than that, and again if the time gets shorter
//   lease ok               answers `lease?`
//   lease stop SECONDS     answers `lease?` after the notice: so much time is left
//   error: REASON          the job's last line was not understood and has been ignored
//
// Numbers are decimal, finite and not negative ("1200", "0.5"). Where several workers report, the
// last line counts. A notice also sends SIGTERM to the workers' process group, unless `no-signals`
// has been said. Nothing a job sends can disturb its supervisor; who sends faster than it reads the
// answers is not read any further until it does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard {

inline constexpr std::size_t kMaxJobLine = 4096;

struct JobLine {
  enum class Kind : unsigned char { kProgress, kCheckpoint, kFinished, kLease, kNoSignals };
  Kind kind = Kind::kLease;
  double iterations = 0;  // of kProgress and kCheckpoint
};

// The error's message is the REASON of the answer.
[[nodiscard]] Result<JobLine> ParseJobLine(std::string_view line);

// Lines to the job, with their ends.
[[nodiscard]] std::string StopLine(double seconds);
[[nodiscard]] std::string ErrorLine(std::string_view reason);

}  // namespace trainyard
