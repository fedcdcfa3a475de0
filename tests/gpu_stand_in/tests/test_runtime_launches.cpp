// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's launches: limits, and errors that stay.
#include "../runtime/src/launch.hpp"
#include "runtime_harness.hpp"

namespace triax::test {
namespace {

constexpr const char* kKernels = R"(
.visible .entry empty() { ret; }
.visible .entry small() .maxntid 64, 1, 1 { ret; }
.visible .entry shared() { .shared .align 4 .b8 s[1024]; .reg .u32 %r<2>; st.shared.u32 [s], 1; ret; }
.visible .entry load(.param .u64 p) {
  .reg .u64 %rd<2>; .reg .u32 %r<2>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ret;
}
)";

class RuntimeLaunches : public RuntimeTest {
 protected:
  void invalid(const std::string& text, dim3 grid, dim3 block) {
    refused(cudaErrorInvalidConfiguration, text, [&] { return kernels.launch("empty", grid, block, 0, nullptr); });
  }
  LoadedKernels kernels{std::string(kKernels) + kSetAndAppend};
};

TEST_F(RuntimeLaunches, TakeParameters) {
  std::uint32_t* p = allocate(1);
  ok(kernels.launch("set", 1, 1, 0, nullptr, p, 3u));
  ok(kernels.launch("append", 1, 1, 0, nullptr, p, 4u));
  EXPECT_EQ(value_at(p), 34u);
}

TEST_F(RuntimeLaunches, HaveLimitsOfGridsAndBlocks) {
  invalid("grid (0, 1, 1) has no block", 0, 1);
  invalid("larger than (2147483647, 65535, 65535)", dim3(1, 65536), 1);
  invalid("larger than (2147483647, 65535, 65535)", dim3(1, 1, 65536), 1);
  invalid("has 0 threads", 1, 0);
  invalid("has 2048 threads", 1, dim3(1024, 2));
  invalid("larger than (1024, 1024, 64)", 1, dim3(1, 1, 65));
  invalid("larger than (1024, 1024, 64)", 1, 1025);
  ok(kernels.launch("empty", dim3(2, 3, 4), dim3(8, 2, 64), 0, nullptr));
  ok(cudaDeviceSynchronize());
}

TEST_F(RuntimeLaunches, HaveTheLimitOfLaunchBounds) {
  refused(cudaErrorInvalidValue, "__launch_bounds__ allows 64",
          [&] { return kernels.launch("small", 1, 65, 0, nullptr); });
  ok(kernels.launch("small", 1, 64, 0, nullptr));
}

TEST_F(RuntimeLaunches, NeedAnAttributeForMuchSharedMemory) {
  constexpr int kMaxDynamicBytes = 163 * 1024 - 1024; // the kernel declares 1024 bytes
  refused(cudaErrorInvalidValue, "set cudaFuncAttributeMaxDynamicSharedMemorySize",
          [&] { return kernels.launch("shared", 1, 1, 49153, nullptr); });
  refused(cudaErrorInvalidValue, "and a block can have 49152",
          [&] { return kernels.launch("shared", 1, 1, 49152, nullptr); });
  ok(kernels.launch("shared", 1, 1, 48 * 1024 - 1024, nullptr));
  const void* host = kernels.find("shared");
  refused(cudaErrorInvalidValue, "and a block can have " + std::to_string(kMaxDynamicBytes), [&] {
    return cudaFuncSetAttribute(host, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicBytes + 1);
  });
  ok(cudaFuncSetAttribute(host, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxDynamicBytes));
  ok(kernels.launch("shared", 1, 1, kMaxDynamicBytes, nullptr));
  ok(cudaDeviceSynchronize());
}

TEST_F(RuntimeLaunches, HaveTheLimitOfRegisters) {
  using gpu_stand_in::registers_of_block;
  EXPECT_EQ(registers_of_block(64, 1024), 65536);
  EXPECT_GT(registers_of_block(65, 1024), 65536);
  EXPECT_EQ(registers_of_block(255, 256), 65536);
  EXPECT_EQ(registers_of_block(16, 1), 4 * 512) << "registers are given to four warps at least";
  gpu_stand_in::Function function;
  gpu_stand_in::Kernel kernel;
  function.name = "wide";
  function.kernel = &kernel;
  function.resources.registers = 72;
  try {
    check_shape(function, {1, 1024, 0});
    FAIL() << "the launch was allowed";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(),
                 "kernel wide: 1024 threads of 72 registers need 73728 registers, and a block can have 65536");
  }
  check_shape(function, {1, 896, 0});
}

TEST_F(RuntimeLaunches, RefuseUnknownAttributes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  refused(cudaErrorNotSupported, "launch attribute",
          [&] { return cudaLaunchKernelExC(&config, kernels.find("empty"), nullptr); });
  config.numAttrs = 0;
  ok(cudaLaunchKernelExC(&config, kernels.find("empty"), nullptr));
  refused(cudaErrorNotSupported, "attribute", [&] {
    return cudaFuncSetAttribute(kernels.find("empty"), cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  });
  int value = 0;
  refused(cudaErrorNotSupported, "device attribute",
          [&] { return cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0); });
}

TEST_F(RuntimeLaunches, OfAnotherDevicesStreamAreRefused) {
  const cudaStream_t stream = make_stream();
  ok(cudaSetDevice(device_ + 1));
  refused(cudaErrorInvalidResourceHandle, "and the current device is GPU",
          [&] { return kernels.launch("empty", 1, 1, 0, stream); });
  ok(cudaSetDevice(device_));
  ok(kernels.launch("empty", 1, 1, 0, stream));
}

TEST_F(RuntimeLaunches, ThatFailMakeAllLaterCallsFail) {
  std::uint32_t* p = allocate(1);
  ok(cudaMemset(p, 0, 4));
  ::testing::internal::CaptureStderr();
  ok(kernels.launch("load", 1, 1, 0, nullptr, p + 1)); // the launch itself is in order
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("0 bytes behind the end of cudaMalloc"));
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(kernels.launch("empty", 1, 1, 0, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "the error stays";
  ok(cudaSetDevice(device_ + 1)); // other devices have no error
  ok(cudaMalloc(&address, 4));
}

TEST_F(RuntimeLaunches, ThatAreRefusedLeaveTheLastErrorOnce) {
  EXPECT_EQ(kernels.launch("empty", 0, 1, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration) << "a look leaves the error";
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(RuntimeErrors, NamesAndTextsAreThoseOfCuda) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  const auto unknown = static_cast<cudaError_t>(12345);
  EXPECT_STREQ(cudaGetErrorName(unknown), "unrecognized error code");
  EXPECT_STREQ(cudaGetErrorString(unknown), "unrecognized error code");
}

TEST(RuntimeVersions, AreThoseOfTheHeaders) {
  int driver = 0, runtime = 0;
  EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  EXPECT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  EXPECT_EQ(driver, CUDART_VERSION);
  EXPECT_EQ(runtime, CUDART_VERSION);
}

TEST_F(RuntimeLaunches, MisalignedAccessesHaveTheirError) {
  std::uint32_t* p = allocate(2);
  ok(cudaMemset(p, 0, 8));
  ok(kernels.launch("load", 1, 1, 0, nullptr, reinterpret_cast<char*>(p) + 2));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
}

TEST_F(RuntimeLaunches, OfMemoryThatIsFreedFindOut) {
  std::uint32_t* p = allocate(1);
  ok(cudaMemset(p, 0, 4));
  ok(cudaFree(p));
  ::testing::internal::CaptureStderr();
  ok(kernels.launch("load", 1, 1, 0, nullptr, p));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("which was freed"));
}

} // namespace
} // namespace triax::test
