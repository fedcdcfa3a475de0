// SPDX-License-Identifier: Apache-2.0
// Ranges of a rank's storage as boxes of the global tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/kept_state.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

using executor::Box;
using executor::boxes_of;

ParamSpec spec_of(const Shape& global, const std::vector<Cut>& cuts) {
  ParamSpec spec;
  spec.name = "w";
  spec.global = spec.local = global;
  spec.cuts = cuts;
  for (const Cut& cut : cuts) spec.local[cut.dim] = cut.end - cut.begin;
  return spec;
}

/// Index in the global tensor of element `local` of the part that the rank has.
std::int64_t global_index(const ParamSpec& spec, std::int64_t local) {
  std::int64_t out = 0, stride = 1;
  for (int dim = spec.local.rank() - 1; dim >= 0; --dim) {
    const Cut* cut = spec.cut_along(dim);
    out += (local % spec.local[dim] + (cut ? cut->begin : 0)) * stride;
    local /= spec.local[dim];
    stride *= spec.global[dim];
  }
  return out;
}

/// The global indices of a box's elements, in its order.
std::vector<std::int64_t> indices_of(const Box& box, const Shape& global) {
  std::vector<std::int64_t> out;
  for (std::int64_t at = 0; at < box.size.elements(); ++at) {
    std::int64_t rest = at, index = 0, stride = 1;
    for (int dim = global.rank() - 1; dim >= 0; --dim) {
      index += (box.begin[dim] + rest % box.size[dim]) * stride;
      rest /= box.size[dim];
      stride *= global[dim];
    }
    out.push_back(index);
  }
  return out;
}

TEST(Boxes, HaveEachElementOfTheRangeOnceAndInOrder) {
  const ParamSpec specs[] = {spec_of({7}, {}),
                             spec_of({1}, {}),
                             spec_of({9, 5}, {}),
                             spec_of({9, 5}, {{"tensor", 0, 3, 6}}),
                             spec_of({9, 6}, {{"tensor", 1, 2, 4}}),
                             spec_of({4, 3, 5}, {{"expert", 0, 1, 3}, {"tensor", 2, 1, 4}}),
                             spec_of({3, 2, 2, 4}, {{"tensor", 1, 1, 2}})};
  for (const ParamSpec& spec : specs) {
    const std::int64_t all = spec.local.elements();
    for (std::int64_t first = 0; first <= all; ++first)
      for (std::int64_t count = 0; first + count <= all; ++count) {
        std::int64_t offset = 0;
        const std::vector<Box> boxes = boxes_of(spec, first, count);
        EXPECT_LE(boxes.size(), 2 * static_cast<std::size_t>(spec.local.rank()) - 1);
        for (const Box& box : boxes) {
          EXPECT_EQ(box.offset, offset);
          for (const std::int64_t index : indices_of(box, spec.global))
            ASSERT_EQ(index, global_index(spec, first + offset++))
                << to_text(spec.global) << " " << first << " " << count;
        }
        ASSERT_EQ(offset, count);
      }
  }
}

TEST(Boxes, LeaveOutPadding) {
  ParamSpec spec = spec_of({70, 4}, {{"tensor", 0, 64, 70}});
  spec.local[0] = 64; // 58 rows of padding
  const std::vector<Box> boxes = boxes_of(spec, 0, 24);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].begin, (Shape{64, 0}));
  EXPECT_EQ(boxes[0].size, (Shape{6, 4}));
  EXPECT_THAT(test::error_of([&] { boxes_of(spec, 0, 25); }),
              ::testing::HasSubstr("w: elements [0, 25) are outside [0, 24)"));
  spec.cuts[0] = {"tensor", 0, 70, 70}; // a rank with padding only
  EXPECT_TRUE(boxes_of(spec, 0, 0).empty());
}

} // namespace
} // namespace triax
