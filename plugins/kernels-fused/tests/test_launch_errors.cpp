// SPDX-License-Identifier: Apache-2.0
// The error of a launch that CUDA rejects names the operation or the kernel, and the file that launches it.
#include <cstdio>
#include <cstdlib>

#include "support/gpu_kernels_suite.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;

/// Runs one operation on memory that is not written: its launch fails first. Prints the error.
template <class MakeArgs>
[[noreturn]] void print_error(MakeArgs make_args) {
  LoadedKernels kernels("kernels-fused");
  const std::unique_ptr<Memory> memory = kernels.device().allocate(1 << 20, MemoryKind::device);
  const std::unique_ptr<Stream> stream = kernels.device().make_stream("test");
  std::int64_t used = 0;
  const auto view = [&](DType type, const Shape& shape) {
    const TensorView out(static_cast<std::byte*>(memory->data()) + used, type, shape);
    used += 65536;
    return out;
  };
  try {
    kernels.set().issue(call_of(make_args(view)), {*stream, {}});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s at %s\n", error.message().c_str(), error.where().c_str());
  }
  std::exit(0);
}

TEST(LaunchErrors, NameOperationOrKernelAndFile) {
  ::setenv("TRIAX_GPU_FAIL", "cudaLaunchKernel:1", 1); // read by the new process
  if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
  if (!is_gpu_stand_in(*cuda::make_device({}))) GTEST_SKIP() << "failures can be planned on the stand-in only";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto dropout = [](const auto& view) {
    return Dropout{view(DType::f32, {4, 8}),
                   view(DType::f32, {4, 8}),
                   {.p = 0.5f, .site = 1, .samples = view(DType::i64, {1}), .rows = 4, .width = 8}};
  };
  EXPECT_EXIT(print_error(dropout), ::testing::ExitedWithCode(0), "kernel dropout: .* at bias_dropout_add.cu:");
  const auto attention = [](const auto& view) {
    const Shape shape{4, 1, 1, 8};
    const TensorView x = view(DType::f32, shape);
    return AttentionFwd{view(DType::f32, shape), view(DType::f32, {1, 1, 4}), x, x, x, 1, {}, {}};
  };
  EXPECT_EXIT(print_error(attention), ::testing::ExitedWithCode(0),
              "kernel attention_forward: .* at attention_forward.cuh:");
  ::unsetenv("TRIAX_GPU_FAIL");
}

} // namespace
} // namespace triax::kernels_fused
