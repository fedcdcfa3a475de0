// SPDX-License-Identifier: Apache-2.0
// Dense table with one value per kind, stage and microbatch. The verifier and the simulator access it millions of
// times, so it does not check its indices.
#pragma once

#include <cstddef>
#include <vector>

namespace triax::schedule {

template <class Value>
class Cells {
 public:
  Cells() = default;
  Cells(int kinds, int stages, int microbatches, const Value& value)
      : stages_(static_cast<std::size_t>(stages)),
        microbatches_(static_cast<std::size_t>(microbatches)),
        values_(static_cast<std::size_t>(kinds) * stages_ * microbatches_, value) {}

  Value& at(int kind, int stage, int microbatch) { return values_[index(kind, stage, microbatch)]; }
  const Value& at(int kind, int stage, int microbatch) const { return values_[index(kind, stage, microbatch)]; }

 private:
  std::size_t index(int kind, int stage, int microbatch) const {
    return (static_cast<std::size_t>(kind) * stages_ + static_cast<std::size_t>(stage)) * microbatches_ +
           static_cast<std::size_t>(microbatch);
  }

  std::size_t stages_ = 0, microbatches_ = 0;
  std::vector<Value> values_;
};

} // namespace triax::schedule
