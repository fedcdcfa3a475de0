// SPDX-License-Identifier: Apache-2.0
// Memory of the fake CUDA device: the host cannot access it, it is poisoned, and it exists as long as items use it.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "device/fake_cuda.hpp"
#include "triax/error.hpp"

namespace triax::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class FakeCudaMemory : public FakeCuda {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(pipe_), 0); }
  void TearDown() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  /// True if this thread can read the address; does not crash if it cannot.
  bool readable(const void* data) { return ::write(pipe_[1], data, 1) == 1 || errno != EFAULT; }

 private:
  int pipe_[2] = {};
};

TEST_F(FakeCudaMemory, OfTheDeviceIsOutOfTheHostsReach) {
  const TensorView far = place(DType::u8, {10'000}), pinned = place(DType::u8, {10'000}, MemoryKind::pinned);
  EXPECT_FALSE(readable(far.data()));
  EXPECT_FALSE(readable(far.as<std::byte>() + 9'999));
  EXPECT_TRUE(readable(pinned.data()));
  EXPECT_TRUE(readable(host_alias(far.data())));
  EXPECT_TRUE(readable(host_alias(far.as<std::byte>() + 9'999)));
}

TEST_F(FakeCudaMemory, HasAnotherAddressForItemsOnly) {
  const TensorView far = place(DType::u8, {100}), pinned = place(DType::u8, {100}, MemoryKind::pinned);
  const TensorView plain = place(DType::u8, {100}, MemoryKind::host);
  EXPECT_NE(host_alias(far.data()), far.data());
  EXPECT_EQ(host_alias(far.as<std::byte>() + 42), static_cast<std::byte*>(host_alias(far.data())) + 42);
  EXPECT_EQ(host_alias(pinned.as<std::byte>() + 42), pinned.as<std::byte>() + 42);
  EXPECT_EQ(host_alias(plain.data()), plain.data());
  EXPECT_EQ(static_cast<FakeCudaStream*>(stream->native())->alias(far.data()), host_alias(far.data()));
  EXPECT_EQ(host_alias(this), this);
  EXPECT_EQ(host_alias(nullptr), nullptr);
}

TEST_F(FakeCudaMemory, IsAlignedAndPoisonedWhenGivenOut) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::host, MemoryKind::pinned}) {
    for (int round = 0; round < 3; ++round) {
      const TensorView view = place(DType::f32, {1000}, kind);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % Arena::kAlignment, 0u);
      const auto* values = static_cast<const float*>(host_alias(view.data()));
      for (int i = 0; i < 1000; ++i) ASSERT_TRUE(std::isnan(values[i]));
    }
  }
  EXPECT_NE(place(DType::f32, {0}).data(), nullptr);
}

TEST_F(FakeCudaMemory, IsMovedInTheOrderOfTheStream) {
  const TensorView staged = place(DType::f32, {3}, MemoryKind::pinned), far = place(DType::f32, {3});
  const TensorView half = place(DType::bf16, {3}), sum = place(DType::f32, {3});
  for (int i = 0; i < 3; ++i) staged.as<float>()[i] = static_cast<float>(i);
  device->upload(far, staged, *stream);
  device->convert(half, far, *stream);
  device->copy(sum, far, *stream);
  device->add(sum, half, *stream);
  EXPECT_THAT(values<float>(sum), ElementsAre(0, 2, 4));
  device->fill(sum.slice(0, 1, 3), 7, *stream);
  EXPECT_THAT(values<float>(sum), ElementsAre(0, 7, 7));
}

/// Pinned memory is read when the stream reaches the copy, and not earlier.
TEST_F(FakeCudaMemory, PinnedIsReadAndWrittenByTheStream) {
  const TensorView staged = place(DType::i32, {1}, MemoryKind::pinned), far = place(DType::i32, {1});
  const TensorView back = place(DType::i32, {1}, MemoryKind::pinned);
  *staged.as<int>() = 1;
  HostEvent blocker;
  stream->wait(blocker.arm());
  device->upload(far, staged, *stream);
  device->download(back, far, *stream);
  *staged.as<int>() = 2;
  EXPECT_EQ(*back.as<int>(), -1);
  blocker.fire();
  stream->ready();
  EXPECT_EQ(*back.as<int>(), 2);
}

TEST_F(FakeCudaMemory, OfTheHostIsCopiedInsideTheCall) {
  int source = 5, result = 0;
  const TensorView far = place(DType::i32, {1});
  device->upload(far, TensorView(&source, DType::i32, {1}), *stream);
  source = 6;
  device->download(TensorView(&result, DType::i32, {1}), far, *stream);
  EXPECT_EQ(result, 5);
}

TEST_F(FakeCudaMemory, InTheWrongPlaceIsRefused) {
  const TensorView far = place(DType::f32, {3}), pinned = place(DType::f32, {3}, MemoryKind::pinned);
  const TensorView plain = place(DType::f32, {3}, MemoryKind::host);
  const auto refused = [&](auto call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("does not reach"));
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { device->add(far, plain, *stream); }));
  EXPECT_TRUE(refused([&] { device->fill(plain, 1, *stream); }));
  EXPECT_TRUE(refused([&] { device->upload(pinned, plain, *stream); }));
  EXPECT_TRUE(refused([&] { device->upload(far, far, *stream); }));
  EXPECT_TRUE(refused([&] { device->download(far, far, *stream); }));
  EXPECT_FALSE(refused([&] { device->copy(far, pinned, *stream); }));
  stream->ready();
}

TEST_F(FakeCudaMemory, ThatGoesStaysUntilTheItemsBeforeHaveRun) {
  const TensorView value = place(DType::i32, {1'000'000}), copy = place(DType::i32, {1'000'000});
  device->fill(value, 3, *stream);
  keep_busy(*stream);
  device->copy(copy, value, *stream);
  std::byte* gone = value.as<std::byte>();
  memory.erase(memory.begin());
  EXPECT_EQ(host_alias(gone), gone) << "items put later find it no more";
  let_end();
  EXPECT_THAT(values<int>(copy), Each(3));
}

} // namespace
} // namespace triax::test
