// SPDX-License-Identifier: Apache-2.0
#include "live/history/configuration_history.h"

#include <algorithm>

namespace trainyard::live {
namespace {

PastConfiguration PastOf(const engine::Configuration& one) {
  return {.number = one.number,
          .author = one.author,
          .since = one.since,
          .changes = one.changes,
          .text = one.text};
}

}  // namespace

const PastConfiguration* ConfigurationHistory::Find(std::uint64_t number) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [number](const PastConfiguration& one) {
    return one.number == number;
  });
  return found == all_.end() ? nullptr : &*found;
}

std::shared_ptr<const ConfigurationHistory> ConfigurationHistory::With(
    const engine::Configuration& former, const engine::Configuration& next) const {
  auto with = std::make_shared<ConfigurationHistory>(*this);
  if (with->all_.empty()) {
    with->all_.push_back(PastOf(former));
  }
  with->all_.push_back(PastOf(next));
  if (with->all_.size() > kMost) {
    with->all_.erase(with->all_.begin(), with->all_.end() - static_cast<std::ptrdiff_t>(kMost));
  }
  return with;
}

}  // namespace trainyard::live
