// SPDX-License-Identifier: Apache-2.0
#include "executor/kept_state.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// The part of the global tensor that the rank has, without padding.
Box stored_box(const ParamSpec& spec) {
  Box out{spec.global, spec.global};
  for (int dim = 0; dim < spec.global.rank(); ++dim) {
    const Cut* cut = spec.cut_along(dim);
    out.begin[dim] = cut ? cut->begin : 0;
    out.size[dim] = cut ? cut->end - cut->begin : spec.global[dim];
  }
  return out;
}

class Splitter {
 public:
  explicit Splitter(const ParamSpec& spec) : stored_(stored_box(spec)), part_(stored_) {}

  /// Boxes of elements [first, first + count) of the flattened dimensions `dim` and above.
  void split(int dim, std::int64_t first, std::int64_t count) {
    std::int64_t row = 1; // elements of one index of `dim`
    for (int inner = dim + 1; inner < stored_.size.rank(); ++inner) row *= stored_.size[inner];
    while (count > 0) {
      const std::int64_t within = first % row, rows = within == 0 ? count / row : 0;
      const std::int64_t taken = rows > 0 ? rows * row : std::min(count, row - within);
      part_.begin[dim] = stored_.begin[dim] + first / row;
      part_.size[dim] = std::max<std::int64_t>(rows, 1);
      if (rows > 0) {
        add(dim);
      } else {
        split(dim + 1, within, taken);
      }
      first += taken;
      count -= taken;
    }
  }
  std::vector<Box> take() { return std::move(out_); }

 private:
  /// The current index of the dimensions up to `dim`, all of those after it.
  void add(int dim) {
    for (int inner = dim + 1; inner < stored_.size.rank(); ++inner) {
      part_.begin[inner] = stored_.begin[inner];
      part_.size[inner] = stored_.size[inner];
    }
    part_.offset = out_.empty() ? 0 : out_.back().offset + out_.back().size.elements();
    out_.push_back(part_);
  }

  const Box stored_;
  Box part_;
  std::vector<Box> out_;
};

} // namespace

std::vector<Box> boxes_of(const ParamSpec& spec, std::int64_t first, std::int64_t count) {
  const std::int64_t all = stored_box(spec).size.elements();
  TRIAX_REQUIRE(first >= 0 && count >= 0 && first + count <= all, "{}: elements [{}, {}) are outside [0, {})",
                spec.name, first, first + count, all);
  Splitter splitter(spec);
  splitter.split(0, first, count);
  return splitter.take();
}

} // namespace triax::executor
