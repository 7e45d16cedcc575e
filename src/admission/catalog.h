// SPDX-License-Identifier: Apache-2.0
// Every admission rule there is, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "trainyard/component.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

struct AdmissionEntry {
  std::string_view name;
  std::string_view help;  // one line
  std::span<const OptionSpec> options;
  std::unique_ptr<Admission> (*make)(const Options& options);
  bool by_policy = false;  // leaves the verdict to the policy (Needs::judges) and judges nothing
};

// Sorted by name.
[[nodiscard]] std::span<const AdmissionEntry> AdmissionCatalog();

// An unknown name or option is an error that lists what is known.
// AdmissionEntry::by_policy. REQUIRES: there is an admission of this name.
[[nodiscard]] bool LeftToPolicy(std::string_view admission);

[[nodiscard]] Result<std::unique_ptr<Admission>> MakeAdmission(const NamedOptions& named);

}  // namespace trainyard
