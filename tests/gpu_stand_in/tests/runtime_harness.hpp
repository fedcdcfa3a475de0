// SPDX-License-Identifier: Apache-2.0
// Helpers of the runtime stand-in's tests: fat binaries made by hand, a device for each test, gates of streams.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
}

namespace triax::test {

// The environment is read at the first CUDA call of the process.
inline const bool kEnvironmentIsSet = [] {
  setenv("TRIAX_GPU_DEVICES", "128", 1);
  setenv("TRIAX_GPU_MEMORY", "64M", 1);
  for (const char* name : {"TRIAX_GPU_SEED", "TRIAX_GPU_FAIL", "TRIAX_GPU_LOG"}) unsetenv(name);
  return true;
}();

// A fat binary as nvcc writes it.
class FatBinaryBuilder {
 public:
  static constexpr std::uint16_t kPtx = 1, kCubin = 2;
  static constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000;

  FatBinaryBuilder& add(std::uint16_t kind, std::uint32_t architecture, const std::string& body,
                        std::uint64_t flags = 0) {
    const std::size_t padded = (body.size() + 1 + 7) / 8 * 8;
    put(kind), put(std::uint16_t{0x101}), put(std::uint32_t{64}), put(std::uint64_t{padded});
    put(std::uint32_t{0}), put(std::uint32_t{0}), put(std::uint16_t{0}), put(std::uint16_t{9}), put(architecture);
    put(std::uint32_t{0}), put(std::uint32_t{0}), put(flags), put(std::uint64_t{0}), put(std::uint64_t{0});
    entries_ += body;
    entries_.resize(entries_.size() + padded - body.size());
    return *this;
  }
  std::string bytes() const {
    std::string file("\x50\xED\x55\xBA\x01\x00\x10\x00", 8);
    const std::uint64_t size = entries_.size();
    file.append(reinterpret_cast<const char*>(&size), sizeof size);
    return file + entries_;
  }

 private:
  template <class T>
  void put(T value) {
    entries_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string entries_;
};

inline std::string ptx_of(const std::string& text) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + text;
}

// A program part with kernels, loaded until it is destroyed.
class LoadedKernels {
 public:
  explicit LoadedKernels(const std::string& ptx)
      : LoadedKernels(FatBinaryBuilder().add(FatBinaryBuilder::kPtx, 80, ptx_of(ptx))) {}
  explicit LoadedKernels(const FatBinaryBuilder& builder, int wrapper_version = 1)
      : bytes_(builder.bytes()), wrapper_{0x466243B1, wrapper_version, bytes_.data(), nullptr} {
    handle_ = __cudaRegisterFatBinary(&wrapper_);
  }
  ~LoadedKernels() { __cudaUnregisterFatBinary(handle_); }
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;

  // The host function of a kernel.
  const void* find(const std::string& name) {
    for (const auto& each : names_) {
      if (*each == name) return each->data();
    }
    names_.push_back(std::make_unique<std::string>(name));
    const char* host = names_.back()->data();
    __cudaRegisterFunction(handle_, host, nullptr, host, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    return host;
  }
  template <class... Args>
  cudaError_t launch(const std::string& name, dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream,
                     Args... args) {
    std::array<void*, sizeof...(args) + 1> pointers{&args..., nullptr};
    return cudaLaunchKernel(find(name), grid, block, pointers.data(), shared, stream);
  }

 private:
  struct Wrapper {
    int magic, version;
    const void* data;
    void* linked;
  };
  std::string bytes_;
  Wrapper wrapper_;
  void** handle_;
  std::vector<std::unique_ptr<std::string>> names_;
};

// set: p[0] = value.  add: p[0] = 10 * p[0] + value, so that the order of launches shows.
constexpr const char* kSetAndAppend = R"(
.visible .entry set(.param .u64 p, .param .u32 value) {
  .reg .u64 %rd<2>; .reg .u32 %r<2>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1; ret;
}
.visible .entry append(.param .u64 p, .param .u32 value) {
  .reg .u64 %rd<2>; .reg .u32 %r<3>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [value];
  ld.global.u32 %r2, [%rd1]; mad.lo.u32 %r2, %r2, 10, %r1; st.global.u32 [%rd1], %r2; ret;
}
)";

// Each test has a separate device, because errors of devices stay.
class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static int next = 0;
    device_ = next++;
    ok(cudaSetDevice(device_));
  }

  static void ok(cudaError_t error) { EXPECT_EQ(error, cudaSuccess) << cudaGetErrorName(error); }
  // The call fails with this error, and prints a message with `text`.
  static void refused(cudaError_t error, const std::string& text, const std::function<cudaError_t()>& call) {
    ::testing::internal::CaptureStderr();
    const cudaError_t result = call();
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(result, error) << "got " << cudaGetErrorName(result);
    EXPECT_THAT(printed, ::testing::HasSubstr(text));
    cudaGetLastError();
  }

  template <class T = std::uint32_t>
  static T* allocate(std::size_t count) {
    void* address = nullptr;
    ok(cudaMalloc(&address, count * sizeof(T)));
    return static_cast<T*>(address);
  }
  static std::uint32_t* allocate_pinned(std::size_t count) {
    void* address = nullptr;
    ok(cudaHostAlloc(&address, count * sizeof(std::uint32_t), cudaHostAllocDefault));
    std::memset(address, 0, count * sizeof(std::uint32_t));
    return static_cast<std::uint32_t*>(address);
  }
  static cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
  }
  static cudaEvent_t make_event() {
    cudaEvent_t event = nullptr;
    ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  }
  static std::uint32_t value_at(const std::uint32_t* address) {
    std::uint32_t value = 0;
    ok(cudaMemcpy(&value, address, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }

  // Holds a stream until *value meets the condition.
  static CUresult wait_for_value(cudaStream_t stream, std::uint32_t* value, std::uint32_t operand, unsigned condition) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult state{};
    ok(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000, cudaEnableDefault, &state));
    EXPECT_EQ(state, cudaDriverEntryPointSuccess);
    const auto wait = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(found);
    return wait(stream, reinterpret_cast<CUdeviceptr>(value), operand, condition);
  }
  // Holds a stream until *blocker is 1.
  static CUresult hold(cudaStream_t stream, std::uint32_t* blocker) {
    return wait_for_value(stream, blocker, 1, CU_STREAM_WAIT_VALUE_GEQ);
  }
  static void open(std::uint32_t* blocker) {
    std::atomic_ref<std::uint32_t>(*blocker).store(1, std::memory_order_release);
  }

  int device_ = 0;
};

} // namespace triax::test
