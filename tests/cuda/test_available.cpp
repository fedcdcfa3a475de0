// SPDX-License-Identifier: Apache-2.0
// Refusals answers about this machine's GPUs and driver before a run starts, and CUDA error messages.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"

namespace triax::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool driver() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version != 0;
}

TEST(Available, ReportsAMissingDriverWithAHint) {
  if (driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  const Refusals answer = available({});
  EXPECT_EQ(answer.front().message, "no CUDA driver on this machine");
  EXPECT_THAT(answer.front().hint, HasSubstr("triax check --no-device"));
  try {
    make_device({});
    FAIL() << "a device was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), answer.front().message);
    EXPECT_EQ(error.hint(), answer.front().hint);
  }
}

TEST(Available, EveryRankHasAGpuOfItsOwn) {
  if (const Refusals answer = available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
  int gpus = 0;
  ASSERT_EQ(cudaGetDeviceCount(&gpus), cudaSuccess);
  EXPECT_TRUE(available({gpus - 1, gpus}).empty());
  EXPECT_EQ(
      available({gpus, gpus + 1}).front().message,
      text("rank {} of {} on this machine has no GPU: {} GPU{} found", gpus, gpus + 1, gpus, gpus == 1 ? "" : "s"));
}

TEST(Available, TheRanksMemoryHasToBeThere) {
  if (const Refusals answer = available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
  EXPECT_TRUE(available({0, 1, 1e6}).empty());
  EXPECT_THAT(available({0, 1, 1e15}).front().message,
              HasSubstr("a rank needs 1 PB of memory, 1 PB more than GPU 0 of this machine"));
}

TEST(Available, NeedAndMemoryHaveAFittingUnit) {
  if (const Refusals answer = available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  if (properties.totalGlobalMem != std::size_t{8} << 30)
    GTEST_SKIP() << "the GPU does not have the memory of the stand-in";
  EXPECT_THAT(
      available({0, 1, 8.613e9}).front().message,
      AllOf(HasSubstr("a rank needs 8.61 GB of memory, 23.1 MB more than GPU 0 of"), HasSubstr(" has: 8.59 GB")));
}

TEST(CudaErrors, NameCallPlaceMessageAndNextStep) {
  check(cudaSuccess, "cudaNothing", __FILE__, __LINE__);
  try {
    check(cudaErrorIllegalAddress, "cudaLaunch(...)", "/somewhere/kernels.cu", 17);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("cudaLaunch(...): an illegal memory access was encountered"));
    EXPECT_THAT(error.message(), HasSubstr("(cudaErrorIllegalAddress)"));
    EXPECT_EQ(error.where(), "kernels.cu:17");
    EXPECT_THAT(error.hint(), HasSubstr("CUDA_LAUNCH_BLOCKING=1"));
  }
}

TEST(CudaErrors, AreNotTheNextCallsToo) {
  if (const Refusals answer = available({}); !answer.empty()) GTEST_SKIP() << answer.front().message; // no call works
  EXPECT_THROW(TRIAX_CUDA(cudaMemcpy(nullptr, nullptr, 8, static_cast<cudaMemcpyKind>(99))), Error);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(LaunchStream, IsOfACudaDeviceOnly) {
  const auto host = make_host_device();
  const auto stream = host->make_stream("of the host");
  try {
    launch_stream(*stream);
    FAIL() << "a native stream of the host";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("stream \"of the host\" does not belong to a CUDA device"));
  }
}

} // namespace
} // namespace triax::cuda
