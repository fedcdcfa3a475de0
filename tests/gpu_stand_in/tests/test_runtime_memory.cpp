// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's memory: allocations, pinned memory, and accesses of the host to device memory.
#include <chrono>
#include <csignal>
#include <thread>

#include "runtime_harness.hpp"

namespace triax::test {
namespace {

class RuntimeMemory : public RuntimeTest {};
using RuntimeMemoryDeathTest = RuntimeMemory;

TEST_F(RuntimeMemory, IsLimitedByTheCapacity) {
  std::size_t free = 0, total = 0;
  ok(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total, 64u << 20);
  EXPECT_EQ(free, total);
  void* all = nullptr;
  ok(cudaMalloc(&all, total));
  ok(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, 0u);
  void* more = &all;
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the error does not stay";
  ok(cudaFree(all));
  ok(cudaMalloc(&more, total));
}

TEST_F(RuntimeMemory, DevicesHaveDifferentAddressesOnTheBus) {
  char first[32] = {}, second[32] = {};
  ok(cudaDeviceGetPCIBusId(first, sizeof first, 0));
  ok(cudaDeviceGetPCIBusId(second, sizeof second, 1));
  EXPECT_STREQ(first, "0000:00:00.0");
  EXPECT_STREQ(second, "0000:01:00.0");
  EXPECT_EQ(cudaDeviceGetPCIBusId(first, sizeof first, 128), cudaErrorInvalidDevice);
}

TEST_F(RuntimeMemory, PinnedCallsRefuseWhatIsNotPinned) {
  std::uint32_t *p = allocate(1), *pinned = allocate_pinned(2);
  void* found = nullptr;
  refused(cudaErrorNotSupported, "does not know flags 4", [&] { return cudaHostAlloc(&found, 4, 4); });
  refused(cudaErrorInvalidValue, "the address is not pinned memory: byte 0 of cudaMalloc",
          [&] { return cudaHostGetDevicePointer(&found, p, 0); });
  refused(cudaErrorInvalidValue, "flags must be 0, got 1", [&] { return cudaHostGetDevicePointer(&found, pinned, 1); });
  ok(cudaHostGetDevicePointer(&found, pinned, 0));
  EXPECT_EQ(found, pinned);
  refused(cudaErrorInvalidValue, "no pinned allocation begins there", [&] { return cudaFreeHost(pinned + 1); });
  ok(cudaFreeHost(pinned));
}

TEST_F(RuntimeMemory, FreeRefusesPointersThatDoNotBeginAnAllocation) {
  std::uint32_t* p = allocate(64);
  refused(cudaErrorInvalidValue, "byte 4 of cudaMalloc", [&] { return cudaFree(p + 1); });
  int own = 0;
  refused(cudaErrorInvalidValue, "pageable host memory", [&] { return cudaFree(&own); });
  ok(cudaFree(p));
  refused(cudaErrorInvalidValue, "which was freed", [&] { return cudaFree(p); });
  ok(cudaFree(nullptr));
}

TEST_F(RuntimeMemory, FreeWaitsForTheDevice) {
  std::uint32_t* blocker = allocate_pinned(1);
  std::uint32_t* from = allocate_pinned(1);
  std::uint32_t* p = allocate(1);
  const cudaStream_t stream = make_stream();
  hold(stream, blocker);
  ok(cudaMemcpyAsync(p, from, 4, cudaMemcpyHostToDevice, stream));
  ok(cudaStreamDestroy(stream)); // returns at once; the work continues
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    open(blocker);
  });
  ok(cudaFree(p));
  opener.join();
  ok(cudaDeviceSynchronize());
}

TEST_F(RuntimeMemory, PointersHaveAttributes) {
  cudaPointerAttributes a{};
  std::uint32_t* p = allocate(4);
  ok(cudaPointerGetAttributes(&a, p + 1));
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
  EXPECT_EQ(a.device, device_);
  EXPECT_EQ(a.hostPointer, nullptr);
  std::uint32_t* pinned = allocate_pinned(4);
  ok(cudaPointerGetAttributes(&a, pinned + 3));
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  void* address = nullptr;
  ok(cudaHostGetDevicePointer(&address, pinned, 0));
  EXPECT_EQ(address, pinned);
  int own = 0;
  ok(cudaPointerGetAttributes(&a, &own));
  EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
  refused(cudaErrorInvalidValue, "not pinned memory", [&] { return cudaHostGetDevicePointer(&address, &own, 0); });
  ok(cudaFree(p));
  refused(cudaErrorInvalidValue, "which was freed", [&] { return cudaPointerGetAttributes(&a, p); });
}

TEST_F(RuntimeMemory, PinnedMemoryIsNewAndFreedOnce) {
  void* address = nullptr;
  ok(cudaHostAlloc(&address, 100, cudaHostAllocPortable | cudaHostAllocMapped));
  EXPECT_EQ(static_cast<unsigned char*>(address)[99], 0xFF);
  refused(cudaErrorInvalidValue, "byte 1 of cudaHostAlloc",
          [&] { return cudaFreeHost(static_cast<char*>(address) + 1); });
  ok(cudaFreeHost(address));
  refused(cudaErrorInvalidValue, "which was freed", [&] { return cudaFreeHost(address); });
  refused(cudaErrorNotSupported, "flags", [&] { return cudaHostAlloc(&address, 100, cudaHostAllocWriteCombined); });
}

TEST_F(RuntimeMemoryDeathTest, TheHostReadsDeviceMemory) {
  std::uint32_t* p = allocate(4);
  EXPECT_EXIT(std::exit(static_cast<int>(*static_cast<volatile std::uint32_t*>(p + 1))),
              ::testing::KilledBySignal(SIGSEGV),
              "the host accesses device memory.*the address is byte 4 of cudaMalloc .*copy it to the host");
}

TEST_F(RuntimeMemoryDeathTest, TheHostWritesFreedPinnedMemory) {
  std::uint32_t* p = allocate_pinned(4);
  p[3] = 1;
  ok(cudaFreeHost(p));
  EXPECT_EXIT(*static_cast<volatile std::uint32_t*>(p) = 1, ::testing::KilledBySignal(SIGSEGV), "which was freed");
}

TEST_F(RuntimeMemoryDeathTest, TheHostWritesBehindPinnedMemory) {
  std::uint32_t* p = allocate_pinned(1024);
  EXPECT_EXIT(*static_cast<volatile std::uint32_t*>(p + 1024) = 1, ::testing::KilledBySignal(SIGSEGV),
              "0 bytes behind the end of cudaHostAlloc");
}

TEST_F(RuntimeMemoryDeathTest, OtherFaultsHaveNoMessage) {
  allocate(4);
  EXPECT_EXIT(*reinterpret_cast<volatile int*>(8) = 1, ::testing::KilledBySignal(SIGSEGV), "^$");
}

} // namespace
} // namespace triax::test
