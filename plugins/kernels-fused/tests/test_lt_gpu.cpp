// SPDX-License-Identifier: Apache-2.0
// cuBLASLt has an algorithm for every epilogue that this set uses, in the shapes of a real model: without one, a linear
// layer would fall back to separate kernels.
#include <gtest/gtest.h>

#include <cstdlib>

#include "lt.hpp"
#include "support/gpu_stand_in.hpp"
#include "triax/cuda/cuda_device.hpp"

namespace triax::kernels_fused {
namespace {

TEST(LtProducts, HaveAnAlgorithmForEveryEpilogue) {
  if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
  const std::unique_ptr<Device> device = cuda::make_device({});
  LtProducts products;
  products.start(false);
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::gelu, Epilogue::gelu_bias,
                                    Epilogue::gelu_bwd, Epilogue::bias_bwd}) {
      const bool of_weight = epilogue == Epilogue::bias_bwd; // the gradient of a weight, in f32
      ProductShape shape{.m = 1024,
                         .n = 512,
                         .k = 256,
                         .transpose_a = !of_weight,
                         .transpose_b = of_weight,
                         .in = type,
                         .out = type,
                         .epilogue = epilogue};
      if (of_weight) shape.out = DType::f32;
      if (type == DType::f32 && shape.has_gelu()) continue; // not used (applies())
      EXPECT_TRUE(products.prepare(shape)) << name_of(type) << ", epilogue " << static_cast<int>(epilogue);
    }
  }
}

/// A plan whose description failed is not kept: the next call makes it again.
[[noreturn]] void prepare_twice() {
  const std::unique_ptr<Device> device = cuda::make_device({});
  LtProducts products;
  products.start(false);
  const ProductShape shape{.m = 64, .n = 64, .k = 64};
  try {
    products.prepare(shape);
    std::exit(1);
  } catch (const Error&) {
    std::exit(products.prepare(shape) ? 0 : 2);
  }
}
TEST(LtProducts, KeepNoPlanThatFailed) {
  ::setenv("TRIAX_GPU_FAIL", "cublasLtMatrixLayoutCreate:2", 1); // read by the new process
  if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
  if (!test::is_gpu_stand_in(*cuda::make_device({}))) GTEST_SKIP() << "failures can be planned on the stand-in only";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(prepare_twice(), ::testing::ExitedWithCode(0), "TRIAX_GPU_FAIL");
  ::unsetenv("TRIAX_GPU_FAIL");
}

} // namespace
} // namespace triax::kernels_fused
