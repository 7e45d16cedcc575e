// SPDX-License-Identifier: Apache-2.0
#include "model/job_fields.h"

#include <cstdio>

namespace trainyard::model {

std::string ExpectedInteger(const JobFieldInfo& info) {
  return "an integer from " + std::to_string(static_cast<std::int64_t>(info.bounds.least)) +
         " to " + std::to_string(static_cast<std::int64_t>(info.bounds.most));
}

std::string ExpectedAmount(const JobFieldInfo& info) {
  std::array<char, 32> most{};
  std::snprintf(most.data(), most.size(), "%.17g", info.bounds.most);
  return "a number > 0 and <= " + std::string(most.data());
}

}  // namespace trainyard::model

namespace trainyard {

// Fields that the writer did not have are passed over: they are as in a new job.
void Serialize(StateStream& state, JobTraits& of) {
  NodeRequest request = of.request.value_or(NodeRequest{});
  model::ForEachJobField([&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
    if (field.info.journal.place > state.job_fields()) {
      return;
    }
    if constexpr (std::is_same_v<Owner, JobTraits>) {
      state(of.*field.member);
    } else if constexpr (std::is_same_v<Owner, GpuRange>) {
      state(of.range.*field.member);
    } else if constexpr (std::is_same_v<Owner, NodeRequest>) {
      state(request.*field.member);
    }
  });
  if (state.reading()) {
    of.request = request == NodeRequest{} ? std::nullopt : std::optional(std::move(request));
  }
}

void Serialize(StateStream& state, JobSpec& of) {
  state(of.traits);
  model::ForEachJobField([&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
    if (field.info.journal.place > state.job_fields()) {
      return;
    }
    if constexpr (std::is_same_v<Owner, JobSpec>) {
      state(of.*field.member);
    }
  });
}

}  // namespace trainyard
