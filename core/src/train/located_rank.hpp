// SPDX-License-Identifier: Apache-2.0
// A rank that says where it is, for reports of failures.
#pragma once

#include <string>

namespace triax::train {

class LocatedRank {
 public:
  virtual ~LocatedRank() = default;
  /// "step 118, 0B3", "after 12 tokens". Any thread.
  virtual std::string position() const = 0;
};

} // namespace triax::train
