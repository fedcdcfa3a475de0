// SPDX-License-Identifier: Apache-2.0
// Arenas: alignment, counting without memory, and errors when they are full.
#include <gmock/gmock.h>

#include <cstdint>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

TEST(Arena, CountsWithoutABlock) {
  Arena arena("plan");
  const TensorView view = arena.tensor(DType::f32, {3, 5});
  EXPECT_EQ(view.data(), nullptr);
  EXPECT_EQ(view.shape(), (Shape{3, 5}));
  EXPECT_EQ(arena.used(), 256u);
  arena.tensor(DType::f64, {33});
  EXPECT_EQ(arena.used(), 256u + 512u);
  EXPECT_EQ(arena.capacity(), 0u);
}

TEST(Arena, HandsOutAlignedViewsOneAfterAnother) {
  const std::unique_ptr<Device> device = make_host_device();
  Arena arena("weights", device->allocate(1024, MemoryKind::device));
  const TensorView a = arena.tensor(DType::u8, {1});
  const TensorView b = arena.tensor(DType::f32, {65});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 256, 0u);
  EXPECT_EQ(b.as<char>() - a.as<char>(), 256);
  EXPECT_EQ(arena.used(), 256u + 512u);
  EXPECT_EQ(arena.data(), a.data());
}

TEST(Arena, MayBeFilledToTheLastByteAndNoFurther) {
  const std::unique_ptr<Device> device = make_host_device();
  Arena arena("activations", device->allocate(512, MemoryKind::device));
  arena.tensor(DType::f32, {128});
  EXPECT_NO_THROW(arena.tensor(DType::f32, {0}));
  try {
    arena.tensor(DType::f32, {2, 3});
    FAIL() << "it grew";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "arena \"activations\" is full: f32[2, 3] needs 256 bytes, 0 of 512 are left");
  }
}

TEST(Arena, OfADryRunRefusesToo) {
  const std::unique_ptr<Device> device = make_dry_run_device(DeviceKind::host);
  Arena arena("plan", device->allocate(256, MemoryKind::device));
  EXPECT_EQ(arena.tensor(DType::f32, {4}).data(), nullptr);
  EXPECT_THROW(arena.tensor(DType::f32, {4}), Error);
}

TEST(HostMemory, RefusesTooLargeAllocations) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's operator new ends the program where the real one throws";
#endif
  const std::unique_ptr<Device> device = make_host_device();
  EXPECT_THROW(device->allocate(std::size_t{1} << 60, MemoryKind::device), Error);
}

} // namespace
} // namespace triax
