// SPDX-License-Identifier: Apache-2.0
// The fields of a job that users may update after they have submitted it: one row for each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainyard/live.pb.h"

namespace trainyard::live {

struct UpdatableField {
  std::string_view name;  // as in job files
  // Gives the job the value that `values` states, or none where it states none.
  void (*set)(const v1::JobRequest& values, v1::JobRequest& job);
  // The job's value, as users write it; empty: none.
  std::string (*text)(const v1::JobRequest& job);
};

// In the order in which changes are told.
[[nodiscard]] std::span<const UpdatableField> UpdatableFields();
// Null: there is none of that name.
[[nodiscard]] const UpdatableField* UpdatableFieldOf(std::string_view name);
// "name, queue, ... or dependency"
[[nodiscard]] std::string UpdatableNames();

}  // namespace trainyard::live
