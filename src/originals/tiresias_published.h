// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "policies/orderings/gittins.h"

namespace trainyard::originals {

// The table of the Tiresias simulator with its roundings (reference 2.3), scaled by 1e6; an index
// stays until the next sample is attained.
class PublishedGittins final : public policies::GittinsIndex {
 public:
  explicit PublishedGittins(const policies::GittinsIndex& index);

  [[nodiscard]] double At(double attained) const override;

 private:
  [[nodiscard]] double Rounded(double attained) const;

  std::vector<double> table_;  // by sample: the index until it is attained
};

}  // namespace trainyard::originals
