// SPDX-License-Identifier: Apache-2.0
// What every policy does, run by run, as tests/digests.csv keeps it: a change of the code that is
// to change no result leaves all of it as it is.
#pragma once

#include <map>
#include <string>

#include "trainyard/status.h"

namespace trainyard {

// By the name of the run: the first digits of the SHA-256 of its journal, jobs.csv and
// timeline.csv; or "refused", where the run is an error.
using Digests = std::map<std::string, std::string>;

// Of a run whose files are in the folder.
[[nodiscard]] Result<std::string> DigestOf(std::string journal_digest, const std::string& folder);

// Every policy of the catalogue on the example's trace and four traces of the reference, in sound
// mode: on its own placement and on first-fit, each without and with nodes that fail; and stopped
// halfway, saved, and gone on with by another engine. `source`: the source tree; `folder`: where
// runs may write their files; what is there is replaced. Errors: inputs that cannot be read; runs
// whose files cannot be written.
[[nodiscard]] Result<Digests> RunCatalogue(const std::string& source, const std::string& reference,
                                           const std::string& folder);

// A CSV with the columns run and digest.
[[nodiscard]] Result<Digests> ReadDigests(const std::string& path);
[[nodiscard]] Status WriteDigests(const Digests& digests, const std::string& path);

// Prints the runs that differ or are only in one of them; whether there are none.
[[nodiscard]] bool ReportDigests(const Digests& expected, const Digests& found);

}  // namespace trainyard
