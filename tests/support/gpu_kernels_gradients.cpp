// SPDX-License-Identifier: Apache-2.0
// Gradients as in training, compared with the reference: repeated tokens, and mixed types of training in 16 bits, where
// data are 16 bits and gradients are accumulated in f32.
#include "support/gpu_kernels_suite.hpp"

namespace triax::test {
namespace {

class Gradients : public AgainstReference {};

/// A repeated token: its row is the sum of all its gradients, in order.
TEST_F(Gradients, OfATokenThatComesManyTimes) {
  CaseTensor t{.name = "t", .shape = {2000}, .kind = Kind::own, .dtype = DType::i32};
  for (int i = 0; i < 2000; ++i) t.values.push_back(i % 7 == 0 ? 1 : 2);
  for (const std::int64_t h : {1, 255, 257}) {
    expect_near({text("embed_bwd {}", h),
                 DType::f32,
                 {tensor("table", Role::in_out, {5, h}), tensor("dy", Role::in, {2000, h}), t},
                 [](const CaseViews& v, const UseCall& use) {
                   use(EmbedBwd{v["table"], v["dy"], v["t"], 0, 5});
                 }},
                1e-5);
  }
}

/// f32 products and sums of 16-bit data: the accumulator is not rounded to the type of the data.
TEST_F(Gradients, InF32OfDataIn16Bits) {
  for (const DType type : {DType::bf16, DType::f16}) {
    const auto name = [&](const char* of) { return text("{}, {}", of, name_of(type)); };
    CaseTensor t{.name = "t", .shape = {70}, .kind = Kind::own, .dtype = DType::i32};
    for (int i = 0; i < 70; ++i) t.values.push_back(i * i % 11);
    expect_near({name("linear_bwd_weight"),
                 type,
                 {tensor("dy", Role::in, {70, 130}), tensor("x", Role::in, {70, 65}),
                  f32("dw", Role::in_out, {130, 65}), f32("db", Role::in_out, {130})},
                 [](const CaseViews& v, const UseCall& use) {
                   use(LinearBwdWeight{v["dw"], v["db"], v["dy"], v["x"]});
                 }},
                1e-5);
    expect_near({name("embed_bwd"),
                 type,
                 {f32("table", Role::in_out, {11, 33}), tensor("dy", Role::in, {70, 33}), t},
                 [](const CaseViews& v, const UseCall& use) {
                   use(EmbedBwd{v["table"], v["dy"], v["t"], 0, 11});
                 }},
                1e-5);
  }
}

} // namespace
} // namespace triax::test
