// SPDX-License-Identifier: Apache-2.0
// Data types, shapes and tensor views.
#include <gmock/gmock.h>

#include "triax/error.hpp"
#include "triax/tensor.hpp"

namespace triax {
namespace {

TEST(DType, SizesAndNames) {
  EXPECT_EQ(bytes_of(DType::f32), 4u);
  EXPECT_EQ(bytes_of(DType::f64), 8u);
  EXPECT_EQ(bytes_of(DType::bf16), 2u);
  EXPECT_EQ(bytes_of(DType::f16), 2u);
  EXPECT_EQ(bytes_of(DType::i32), 4u);
  EXPECT_EQ(bytes_of(DType::i64), 8u);
  EXPECT_EQ(bytes_of(DType::u8), 1u);
  EXPECT_EQ(name_of(DType::bf16), "bf16");
  EXPECT_TRUE(is_floating(DType::f16));
  EXPECT_FALSE(is_floating(DType::i64));
}

TEST(Shape, ElementsAndText) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{4, 0, 3}).elements(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 3, 4})[-1], 4);
  EXPECT_EQ(to_text(Shape{256, 1, 384}), "[256, 1, 384]");
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_THROW((Shape{1, 2, 3, 4, 5}), Error);
  EXPECT_THROW((Shape{-1}), Error);
}

class View : public testing::Test {
 protected:
  float memory[24] = {};
  TensorView view{memory, DType::f32, {2, 3, 4}};
};

TEST_F(View, IsDenseFromTheLastDimension) {
  EXPECT_EQ(view.stride(0), 12);
  EXPECT_EQ(view.stride(1), 4);
  EXPECT_EQ(view.stride(-1), 1);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view.bytes(), 96u);
  EXPECT_EQ(to_text(view), "f32[2, 3, 4]");
  EXPECT_TRUE(TensorView().empty());
  EXPECT_FALSE(view.empty());
}

TEST_F(View, SlicesShareMemory) {
  const TensorView part = view.slice(1, 1, 3);
  EXPECT_EQ(part.data(), memory + 4);
  EXPECT_EQ(part.shape(), (Shape{2, 2, 4}));
  EXPECT_FALSE(part.contiguous());
  EXPECT_TRUE(view.slice(0, 1, 2).contiguous());
  EXPECT_EQ(view.slice(-1, 2, 2).elements(), 0);
  EXPECT_THROW(view.slice(1, 2, 4), Error);
  EXPECT_THROW(view.slice(1, 2, 1), Error);
  EXPECT_THROW(view.slice(3, 0, 1), Error);
}

TEST_F(View, AtDropsTheOutermostDimension) {
  const TensorView one = view.at(1);
  EXPECT_EQ(one.shape(), (Shape{3, 4}));
  EXPECT_EQ(one.data(), memory + 12);
  EXPECT_EQ(one.at(2).at(3).data(), memory + 23);
  EXPECT_EQ(one.at(2).at(3).rank(), 0);
  EXPECT_THROW(view.at(2), Error);
}

TEST_F(View, ReshapesContiguousViews) {
  EXPECT_EQ(view.as_rows().shape(), (Shape{6, 4}));
  EXPECT_EQ(view.flat().shape(), (Shape{24}));
  EXPECT_EQ(view.reshape({4, 6}).stride(0), 6);
  EXPECT_THROW(view.reshape({4, 5}), Error);
  EXPECT_THROW(view.slice(2, 0, 2).flat(), Error);
  EXPECT_EQ(TensorView(memory, DType::f32, {3, 0}).as_rows().shape(), (Shape{0, 0}));
}

TEST_F(View, ADimensionOfOneMayHaveAnyStride) {
  EXPECT_TRUE(TensorView(memory, DType::f32, {3, 1, 4}, {4, 999, 1}).contiguous());
}

TEST_F(View, WithoutDataStaysWithoutData) {
  const TensorView planned(nullptr, DType::f32, {4, 4});
  EXPECT_EQ(planned.slice(0, 2, 4).data(), nullptr);
  EXPECT_EQ(planned.at(3).data(), nullptr);
}

} // namespace
} // namespace triax
