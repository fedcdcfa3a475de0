// SPDX-License-Identifier: Apache-2.0
// The device of a dry run: sizes without memory, and checks without work.
#include <gmock/gmock.h>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

TEST(PlanDevice, HasTheKindAskedFor) {
  EXPECT_EQ(make_dry_run_device(DeviceKind::cuda)->kind(), DeviceKind::cuda);
  EXPECT_EQ(make_dry_run_device(DeviceKind::sim)->description(), "a dry run for sim");
}

TEST(PlanDevice, AllocatesSizesOnly) {
  const std::unique_ptr<Device> device = make_dry_run_device(DeviceKind::host);
  const std::unique_ptr<Memory> memory = device->allocate(std::size_t{1} << 60, MemoryKind::device);
  EXPECT_EQ(memory->data(), nullptr);
  EXPECT_EQ(memory->bytes(), std::size_t{1} << 60);
}

TEST(PlanDevice, ChecksMovementsAndDoesNothing) {
  const std::unique_ptr<Device> device = make_dry_run_device(DeviceKind::host);
  const std::unique_ptr<Stream> stream = device->make_stream("plan");
  const TensorView a(nullptr, DType::f32, {4}), b(nullptr, DType::f32, {5}), c(nullptr, DType::bf16, {4});
  device->copy(a, a, *stream);
  device->fill(a, 1, *stream);
  device->convert(a, c, *stream);
  device->add(a, a, *stream);
  EXPECT_THROW(device->copy(a, b, *stream), Error);
  EXPECT_THROW(device->add(c, a, *stream), Error);
  EXPECT_THROW(device->convert(a, b, *stream), Error);
}

TEST(PlanDevice, WaitsForNothingAndTakesNoTasks) {
  struct Never final : HostTask {
    bool advance() noexcept override { return false; }
  } never;
  const std::unique_ptr<Device> device = make_dry_run_device(DeviceKind::host);
  const std::unique_ptr<Stream> stream = device->make_stream("plan");
  HostEvent event;
  stream->wait(event.arm());
  stream->ready();
  EXPECT_TRUE(stream->record().fired());
  EXPECT_THROW(stream->post(never), Error);
}

} // namespace
} // namespace triax
