// SPDX-License-Identifier: Apache-2.0
// What has been measured, as clients are told, beside what the controller's profiles state.
#pragma once

#include "profile/measured_book.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine

namespace trainyard::live {

// A row for each measurement of the book, in its order.
[[nodiscard]] v1::ProfilesReply RowsOf(const profile::MeasuredBook& book);

// `profiles`: of the controller; may be null.
[[nodiscard]] v1::ProfilesReply MeasuredProfiles(const engine::Engine& engine,
                                                 const profile::ThroughputTable* profiles);

}  // namespace trainyard::live
