// SPDX-License-Identifier: Apache-2.0
// The runtime stand-in's copies and fills.
#include "runtime_harness.hpp"

namespace triax::test {
namespace {

class RuntimeCopies : public RuntimeTest {};

TEST_F(RuntimeCopies, GoBetweenHostAndDevices) {
  std::vector<std::uint32_t> values{1, 2, 3, 4}, back(4);
  std::uint32_t *a = allocate(4), *b = allocate(4);
  ok(cudaMemcpy(a, values.data(), 16, cudaMemcpyHostToDevice));
  ok(cudaMemcpy(b, a, 16, cudaMemcpyDeviceToDevice));
  ok(cudaMemcpy(back.data(), b, 16, cudaMemcpyDefault));
  EXPECT_EQ(back, values);
  ok(cudaMemset(b, 0, 8));
  ok(cudaMemcpy(back.data(), b, 16, cudaMemcpyDeviceToHost));
  EXPECT_EQ(back, (std::vector<std::uint32_t>{0, 0, 3, 4}));
}

TEST_F(RuntimeCopies, FillsFollowTheirStream) {
  std::uint32_t *gate = allocate_pinned(1), *pinned = allocate_pinned(1);
  std::uint32_t* p = allocate(2);
  const cudaStream_t stream = make_stream();
  ok(cudaMemset(p, 0, 8));
  hold(stream, gate);
  ok(cudaMemsetAsync(p + 1, 0x11, 4, stream));
  ok(cudaMemsetAsync(pinned, 0x22, 4, stream));
  EXPECT_EQ(value_at(p + 1), 0u);
  open(gate);
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(value_at(p), 0u);
  EXPECT_EQ(value_at(p + 1), 0x11111111u);
  EXPECT_EQ(*pinned, 0x22222222u);
  std::uint32_t own = 0;
  refused(cudaErrorInvalidValue, "cannot fill pageable host memory",
          [&] { return cudaMemsetAsync(&own, 0, 4, stream); });
  refused(cudaErrorInvalidValue, "the range", [&] { return cudaMemsetAsync(p, 0, 9, stream); });
}

TEST_F(RuntimeCopies, TakeRowsWithPitches) {
  std::vector<std::uint32_t> values{1, 2, 3, 4, 5, 6}, back(4);
  std::uint32_t* p = allocate(6);
  const cudaStream_t stream = make_stream();
  ok(cudaMemcpy(p, values.data(), 24, cudaMemcpyHostToDevice));
  ok(cudaMemcpy2DAsync(back.data(), 8, p, 12, 8, 2, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(back, (std::vector<std::uint32_t>{1, 2, 4, 5}));
  refused(cudaErrorInvalidPitchValue, "overlap",
          [&] { return cudaMemcpy2DAsync(back.data(), 4, p, 12, 8, 2, cudaMemcpyDeviceToHost, stream); });
}

TEST_F(RuntimeCopies, OfAnotherKindThanTheySayAreRefused) {
  std::uint32_t *device = allocate(1), *pinned = allocate_pinned(1);
  std::uint32_t own = 0;
  ok(cudaMemset(device, 0, 4));
  for (const cudaMemcpyKind kind : {cudaMemcpyHostToDevice, cudaMemcpyHostToHost, cudaMemcpyDeviceToDevice}) {
    refused(cudaErrorInvalidValue, "but the copy is from byte 0 of cudaMalloc",
            [&] { return cudaMemcpy(&own, device, 4, kind); });
  }
  refused(cudaErrorInvalidValue, "to byte 0 of cudaMalloc",
          [&] { return cudaMemcpyAsync(device, pinned, 4, cudaMemcpyDeviceToHost, nullptr); });
  ok(cudaMemcpy(&own, device, 4, cudaMemcpyDeviceToHost));
  ok(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, nullptr));
}

TEST_F(RuntimeCopies, BeyondAnAllocationOrAPitchAreRefused) {
  std::uint32_t *device = allocate(4), *pinned = allocate_pinned(4);
  std::vector<std::uint32_t> own(8);
  refused(cudaErrorInvalidValue, "the destination of 17 bytes is not in one allocation",
          [&] { return cudaMemcpy(device, own.data(), 17, cudaMemcpyHostToDevice); });
  refused(cudaErrorInvalidValue, "the source of 20 bytes is not in one allocation",
          [&] { return cudaMemcpyAsync(allocate(5), pinned, 20, cudaMemcpyDefault, nullptr); });
  refused(cudaErrorInvalidValue, "the range of 17 bytes", [&] { return cudaMemset(device, 0, 17); });
  refused(cudaErrorInvalidValue, "cannot fill pageable", [&] { return cudaMemset(own.data(), 0, 4); });
  const std::size_t most = 0x7FFFFFFF;
  const auto copy = [&](std::size_t to_pitch, std::size_t from_pitch) {
    return cudaMemcpy2DAsync(device, to_pitch, pinned, from_pitch, 4, 1, cudaMemcpyHostToDevice, nullptr);
  };
  refused(cudaErrorInvalidPitchValue, "at most 2147483647 are allowed", [&] { return copy(most + 1, 4); });
  refused(cudaErrorInvalidPitchValue, "at most 2147483647 are allowed", [&] { return copy(4, most + 1); });
  ok(copy(most, most)); // a pitch of one row is not used
  ok(cudaMemcpy(device, own.data(), 16, cudaMemcpyHostToDevice));
}

TEST_F(RuntimeCopies, ToTheHostReadWrittenBytesOnly) {
  std::uint32_t *a = allocate(4), *b = allocate(4);
  ok(cudaMemset(a, 0, 8));
  ok(cudaMemcpy(b, a, 16, cudaMemcpyDeviceToDevice)); // takes along what was not written
  std::vector<std::uint32_t> own(4);
  ok(cudaMemcpy(own.data(), b, 8, cudaMemcpyDeviceToHost));
  refused(cudaErrorIllegalAddress, "reads byte 8 of cudaMalloc",
          [&] { return cudaMemcpy(own.data(), b, 16, cudaMemcpyDeviceToHost); });
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress) << "the error stays";
}

TEST_F(RuntimeCopies, ReadPinnedMemoryWhenTheStreamComesToThem) {
  std::uint32_t *blocker = allocate_pinned(1), *pinned = allocate_pinned(1), *p = allocate(1);
  const cudaStream_t stream = make_stream();
  hold(stream, blocker);
  pinned[0] = 1;
  ok(cudaMemcpyAsync(p, pinned, 4, cudaMemcpyHostToDevice, stream));
  pinned[0] = 2; // too early: the copy has not run
  open(blocker);
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(value_at(p), 2u);
}

TEST_F(RuntimeCopies, ReadPageableMemoryBeforeTheyReturn) {
  std::uint32_t* p = allocate(1);
  const cudaStream_t stream = make_stream();
  std::uint32_t own = 1;
  ok(cudaMemcpyAsync(p, &own, 4, cudaMemcpyHostToDevice, stream));
  own = 2;
  ok(cudaStreamSynchronize(stream));
  EXPECT_EQ(value_at(p), 1u);
}

TEST_F(RuntimeCopies, OfMemoryThatIsNullAreRefused) {
  refused(cudaErrorInvalidValue, "an address is null",
          [&] { return cudaMemcpy(nullptr, nullptr, 4, cudaMemcpyDefault); });
  ok(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
}

} // namespace
} // namespace triax::test
