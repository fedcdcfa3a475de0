// SPDX-License-Identifier: Apache-2.0
// A GPU device: description, memory of every kind, and the error after a failed kernel.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "gpu.hpp"
#include "support/gpu_stand_in.hpp"
#include "test_kernels.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/extension.hpp"
#include "triax/recording.hpp"

namespace triax::cuda {
namespace {

using testing::HasSubstr;

TEST_F(Gpu, DescribesItself) {
  EXPECT_EQ(device->kind(), DeviceKind::cuda);
  EXPECT_THAT(device->description(), HasSubstr("(GPU 0 of this machine), compute capability "));
  EXPECT_NE(stream->native(), nullptr);
  EXPECT_EQ(stream->name(), "test");
}

TEST_F(Gpu, MemoryOfEveryKindIsAligned) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::host, MemoryKind::pinned}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
      const auto memory = device->allocate(bytes, kind);
      EXPECT_EQ(memory->bytes(), bytes);
      ASSERT_NE(memory->data(), nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % Arena::kAlignment, 0u);
      if (kind != MemoryKind::device) std::memset(memory->data(), 1, bytes);
    }
  }
}

/// A pointer that was freed with the wrong function stays registered.
TEST_F(Gpu, MemoryOfEveryKindIsGivenBack) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    const void* address = nullptr;
    {
      const std::unique_ptr<Memory> memory = device->allocate(256, kind);
      address = memory->data();
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << static_cast<int>(kind);
    cudaPointerAttributes attributes{};
    cudaPointerGetAttributes(&attributes, address);
    cudaGetLastError(); // an older CUDA reports an address that it does not know
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered) << static_cast<int>(kind);
  }
}

TEST_F(Gpu, RefusesTooLargeAllocationsAndContinues) {
  try {
    device->allocate(std::size_t{1} << 60, MemoryKind::device);
    FAIL() << "an exbibyte";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("the GPU cannot allocate 1.15 EB of memory: "));
    EXPECT_THAT(error.hint(), HasSubstr("batch.micro"));
  }
  const TensorView view = place(DType::f32, {3});
  device->fill(view, 2, *stream);
  EXPECT_EQ(values<float>(view), (std::vector<float>{2, 2, 2}));
}

TEST_F(Gpu, ArenasLieInItsMemory) {
  Arena arena("test", device->allocate(1024, MemoryKind::device));
  const TensorView first = arena.tensor(DType::f32, {3}), second = arena.tensor(DType::f32, {3});
  EXPECT_EQ(second.as<std::byte>() - first.as<std::byte>(), 256);
}

/// A recording starts on every stream. If one of them cannot, the others record no longer, and their events fire.
TEST_F(Gpu, ARecordingThatCannotBeginLeavesEveryStreamAsItWas) {
  HostEvent event;
  const auto later = device->make_stream("later");
  later->wait(event.arm());
  device->set_default_timeout(0.05);
  auto* recorder = find_extension<Recorder>(*device);
  ASSERT_NE(recorder, nullptr);
  EXPECT_THROW(recorder->begin_recording(*stream), Error);
  device->set_default_timeout(60);
  finish();
  event.fire();
  later->ready();
  recorder->begin_recording(*stream);
  EXPECT_NE(recorder->end_recording(), nullptr);
}

/// A thread that has chosen no GPU has GPU 0, on which a call of CUDA would create a context. In another process, which
/// may have two GPUs of the stand-in.
[[noreturn]] void query_in_another_thread() {
  const auto device = make_device({.local_rank = 1, .local_ranks = 2});
  const auto stream = device->make_stream("compute");
  const Event event = stream->record();
  int gpu = -1;
  std::thread([&] {
    while (!event.fired()) std::this_thread::yield();
    cudaGetDevice(&gpu);
  }).join();
  std::fprintf(stderr, "GPU %d is current\n", gpu);
  std::exit(0);
}

TEST_F(Gpu, AnEventIsQueriedOnItsGpuInEachThread) {
  int gpus = 0;
  ASSERT_EQ(cudaGetDeviceCount(&gpus), cudaSuccess);
  if (gpus < 2 && !test::is_gpu_stand_in(*device)) GTEST_SKIP() << "needs two GPUs";
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; // starts a new process: a fork could not use the GPU
  const Variable two("TRIAX_GPU_DEVICES", "2");
  EXPECT_EXIT(query_in_another_thread(), testing::ExitedWithCode(0), "GPU 1 is current");
}

/// Prints the error of a wait after a kernel wrote to an invalid address. CUDA is unusable in the process afterwards,
/// so this runs in another process.
[[noreturn]] void report_an_illegal_write() {
  std::string message;
  {
    const auto device = make_device({});
    const auto stream = device->make_stream("compute");
    const auto flag = device->allocate(sizeof(unsigned), MemoryKind::pinned);
    auto* end = static_cast<unsigned*>(flag->data());
    *end = 1;
    launch_until(end, launch_stream(*stream)); // loads both kernels before one occupies the GPU
    launch_write(static_cast<int*>(flag->data()), launch_stream(*stream));
    stream->ready();
    *end = 0;
    stream->begin(7, "0F3");
    launch_until(end, launch_stream(*stream)); // delays the write until the event is recorded
    launch_write(reinterpret_cast<int*>(0x10), launch_stream(*stream));
    const Event after = stream->record();
    std::atomic_ref(*end).store(1);
    try {
      device->wait(after, deadline_in(60));
    } catch (const Error& error) {
      message = error.what();
    }
    stream->end(7);
  }
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(3);
}

TEST_F(Gpu, ReportsAnIllegalWriteOfAKernelInAWait) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; // starts a new process: a fork could not use the GPU
  EXPECT_EXIT(report_an_illegal_write(), testing::ExitedWithCode(3),
              "at or before 0F3 on stream \"compute\".*cudaErrorIllegalAddress");
}

} // namespace
} // namespace triax::cuda
