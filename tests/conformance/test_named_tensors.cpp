// SPDX-License-Identifier: Apache-2.0
// Tensors by name: what differs is said without reading beyond the smaller one.
#include <gtest/gtest.h>

#include <vector>

#include "named_tensors.hpp"

namespace triax::conformance {
namespace {

TensorBytes floats(std::vector<float> values) {
  return bytes_of_tensor({values.data(), DType::f32, Shape{static_cast<std::int64_t>(values.size())}});
}

TEST(NamedTensors, AreEqualWithEqualBits) {
  EXPECT_EQ(difference(Tensors{{"a", floats({1, 2})}}, Tensors{{"a", floats({1, 2})}}), "");
  EXPECT_EQ(difference(Tensors{{"a", floats({1, 3})}}, Tensors{{"a", floats({1, 2})}}),
            "element 1 of a is 3, must be 2");
}

TEST(NamedTensors, OfOtherSizesDiffer) {
  const Tensors two{{"a", floats({1, 2})}}, three{{"a", floats({1, 2, 3})}};
  EXPECT_EQ(difference(two, three), "a has 2 elements of f32, must have 3 of f32");
  EXPECT_EQ(difference(three, two), "a has 3 elements of f32, must have 2 of f32");
}

TEST(NamedTensors, OfOtherTypesDiffer) {
  double value = 1;
  const Tensors wide{{"a", bytes_of_tensor({&value, DType::f64, Shape{1}})}}, narrow{{"a", floats({0, 1})}};
  EXPECT_EQ(difference(wide, narrow), "a has 1 elements of f64, must have 2 of f32");
}

TEST(NamedTensors, ThatOnlyOneHasDiffer) {
  const Tensors none, one{{"a", floats({1})}};
  EXPECT_EQ(difference(none, one), "a is missing");
  EXPECT_EQ(difference(one, none), "a must not exist");
}

} // namespace
} // namespace triax::conformance
