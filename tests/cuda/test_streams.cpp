// SPDX-License-Identifier: Apache-2.0
// Streams of a GPU device (support/stream_suite.hpp), with both methods of waiting for the host. A stream is kept
// busy by a kernel that runs until the test ends it.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>

#include "gpu.hpp"
#include "support/stream_suite.hpp"
#include "test_kernels.hpp"

namespace triax {
namespace {

class GpuStreams final : public test::StreamsUnderTest {
 public:
  explicit GpuStreams(cuda::DeviceSettings::HostWaits waits)
      : device_(cuda::make_device({}, {waits})), flag_(device_->allocate(sizeof(unsigned), MemoryKind::pinned)) {
    // Loads the kernel.
    const std::unique_ptr<Stream> stream = device_->make_stream("first");
    std::atomic_ref(flag()).store(1);
    keep_busy(*stream);
    device_->wait(stream->record(), deadline_in(60));
    std::atomic_ref(flag()).store(0);
  }
  Device& device() override { return *device_; }
  void keep_busy(Stream& stream) override { cuda::launch_until(&flag(), cuda::launch_stream(stream)); }
  void let_end() override { std::atomic_ref(flag()).store(1); }

 private:
  unsigned& flag() { return *static_cast<unsigned*>(flag_->data()); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> flag_;
};

} // namespace

std::vector<std::string> test::streams_to_test() {
  return {"automatic", "progress_loop"};
}

std::unique_ptr<test::StreamsUnderTest> test::make_streams(const std::string& name, std::string& reason) {
  if (const Refusals answer = cuda::available({}); !answer.empty()) {
    reason = answer.front().message;
    return nullptr;
  }
  using HostWaits = cuda::DeviceSettings::HostWaits;
  return std::make_unique<GpuStreams>(name == "automatic" ? HostWaits::automatic : HostWaits::progress_loop);
}

namespace cuda {
namespace {

/// Prints the default device's description, so that test reports show which method this machine uses.
TEST_F(Gpu, SaysHowStreamsWaitForTheHost) {
  EXPECT_THAT(device->description(),
              testing::AnyOf(testing::HasSubstr("streams wait for host work by stream memory operations"),
                             testing::HasSubstr("the host launches work only when")));
  std::puts(device->description().c_str());
}

} // namespace
} // namespace cuda
} // namespace triax
