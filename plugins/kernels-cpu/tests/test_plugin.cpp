// SPDX-License-Identifier: Apache-2.0
// The kernel set, loaded as a plugin.
#include <gtest/gtest.h>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/kernels.hpp"

namespace triax {
namespace {

class CpuPlugin : public ::testing::Test {
 protected:
  plugin::Instance<KernelSet> make(std::int64_t threads, int given) {
    options_.set("threads", threads);
    return plugin::create<KernelSet>(library_, {options_, null_log(), layout_, 0, given});
  }
  const plugin::Library& library_ = plugin::load(test::plugin_file("kernels-cpu"), "kernels");
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
};

TEST_F(CpuPlugin, TakesTheThreadsOfTheOptionOrElseOfTheCore) {
  // Attention's scratch is per thread, so its size shows the number of threads.
  const TensorView x(nullptr, DType::f32, {64, 1, 1, 8}), lse(nullptr, DType::f32, {1, 1, 64});
  const AttentionFwd args{x, lse, x, x, x, 1, {}, {}};
  const std::size_t one = make(1, 7)->scratch_bytes(call_of(args));
  EXPECT_GT(one, 0u);
  EXPECT_EQ(make(3, 7)->scratch_bytes(call_of(args)), 3 * one);
  EXPECT_EQ(make(0, 7)->scratch_bytes(call_of(args)), 7 * one);
}

TEST_F(CpuPlugin, ComputesThroughThePluginAbi) {
  const auto set = make(2, 1);
  const auto device = make_host_device();
  set->start(*device);
  const auto stream = device->make_stream("main");
  float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, d[4] = {};
  const auto matrix = [](float* data) { return TensorView(data, DType::f32, {2, 2}); };
  set->gemm({.d = matrix(d), .a = matrix(a), .b = matrix(b)}, {*stream, {}});
  EXPECT_EQ(std::vector<float>(d, d + 4), (std::vector<float>{19, 22, 43, 50}));
  EXPECT_EQ(set->calls(Op::gemm), 1u);
}

TEST_F(CpuPlugin, RefusesUnsupportedTypes) {
  const auto set = make(0, 1);
  EXPECT_TRUE(set->supports(KernelRequest{}).empty());
  EXPECT_TRUE(set->supports(KernelRequest{.compute = DType::bf16, .master = DType::f32}).empty());
  EXPECT_TRUE(set->supports(KernelRequest{.compute = DType::f16, .master = DType::f32}).empty());
  const Refusals layers = set->supports(KernelRequest{.compute = DType::f64, .master = DType::f32});
  EXPECT_FALSE(layers.empty());
  EXPECT_EQ(layers.front().message,
            "kernels-cpu does not support compute type fp64; supported: fp32, and bf16 or fp16 with fp32 arithmetic");
  EXPECT_EQ(layers.front().hint, "use train.precision fp32, bf16 or fp16, or a kernel set that computes in fp64");
  const Refusals master = set->supports(KernelRequest{.compute = DType::bf16, .master = DType::bf16});
  EXPECT_EQ(master.front().message, "master weights must be fp32 for kernels-cpu, got bf16");
}

} // namespace
} // namespace triax
