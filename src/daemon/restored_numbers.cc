// SPDX-License-Identifier: Apache-2.0
#include "daemon/restored_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/try.h"

namespace trainyard::daemon {
namespace {

constexpr const char* kSetting = "numbers";

}  // namespace

std::uint64_t FirstNumberAt(double unix_now) {
  constexpr double kZero = 1'767'225'600;  // 2026-01-01, UTC
  constexpr double kPerSecond = 2'000;
  return static_cast<std::uint64_t>(std::max(0.0, unix_now - kZero) * kPerSecond) + 1;
}

Result<model::JobNumbers> KeptNumbers(const store::Store& store) {
  ASSIGN_OR_RETURN(const std::string text, store.Setting(kSetting));
  return model::JobNumbers::From(text);
}

Status RenumberCopy(const RestoredState& state, store::Store& store, model::JobNumbers& numbers,
                    const std::function<void(const std::string&)>& log) {
  const std::filesystem::path mark = std::filesystem::path(state.folder) / kCopyMark;
  std::error_code error;
  if (!std::filesystem::exists(mark, error)) {
    return {};
  }
  const std::uint64_t first = FirstNumberAt(state.unix_now);
  if (!numbers.Continue(JobAt(state.jobs), first)) {
    return Failed(fmt::format(
        "{}: is a copy that has been put back, and jobs up to {} have been numbered in it; by the "
        "clock its next is {}; expected a clock that is right",
        state.folder, numbers.Of(JobAt(state.jobs)) - 1, first));
  }
  RETURN_IF_ERROR(store.SetSetting(kSetting, numbers.ToText()));
  if (!std::filesystem::remove(mark, error)) {
    return Failed(fmt::format("{}: cannot be removed: {}", mark.string(), error.message()));
  }
  if (log) {
    log(fmt::format("the state is a copy that has been put back: the next job is {}", first));
  }
  return {};
}

}  // namespace trainyard::daemon
