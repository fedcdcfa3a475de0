// SPDX-License-Identifier: Apache-2.0
// Streams of the fake CUDA device: the suite for GPU streams (support/stream_suite.hpp), and behaviour of the fake
// only.
#include <gmock/gmock.h>

#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "device/fake_cuda.hpp"
#include "support/stream_suite.hpp"
#include "triax/error.hpp"

namespace triax::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeStreams final : public StreamsUnderTest {
 public:
  Device& device() override { return *device_; }
  void keep_busy(Stream& stream) override {
    fake_launch_stream(stream).enqueue([end = end_.get_future().share()] { end.wait(); });
    is_busy_ = true;
  }
  void let_end() override {
    if (std::exchange(is_busy_, false)) end_.set_value();
  }

 private:
  std::unique_ptr<Device> device_ = make_fake_cuda_device(7);
  std::promise<void> end_; // a test holds one stream
  bool is_busy_ = false;
};

class FakeCudaStreams : public FakeCuda {};

/// The purpose of the fake device: a missing wait shows.
TEST_F(FakeCudaStreams, ShowPoisonIfAWaitIsMissing) {
  const auto other = device->make_stream("other");
  const TensorView value = place(DType::i32, {1}), copy = place(DType::i32, {1});
  keep_busy(*stream);
  device->fill(value, 2, *stream);
  device->copy(copy, value, *other);
  device->wait(other->record(), deadline_in(60));
  let_end();
  EXPECT_THAT(values<int>(copy), ElementsAre(-1));
}

/// As on a GPU: a library that uses the native stream directly runs ahead of host work.
TEST_F(FakeCudaStreams, TheNativeStreamItselfKnowsNothingOfHostWork) {
  HostEvent blocker;
  stream->wait(blocker.arm());
  std::atomic<int> ran{0};
  static_cast<FakeCudaStream*>(stream->native())->enqueue([&] { ++ran; });
  const Deadline deadline = deadline_in(60);
  while (ran == 0 && Clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(ran, 1);
  fake_launch_stream(*stream).enqueue([&] { ++ran; });
  const Event behind = stream->record();
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_EQ(ran, 1);
  blocker.fire();
  device->wait(behind, deadline_in(60));
  EXPECT_EQ(ran, 2);
}

TEST_F(FakeCudaStreams, AnItemThatThrowsFailsTheEventsAfterIt) {
  const Event before = stream->record();
  fake_launch_stream(*stream).enqueue([] { throw std::runtime_error("the peer is gone"); });
  bool later = false;
  fake_launch_stream(*stream).enqueue([&later] { later = true; });
  try {
    device->wait(stream->record(), deadline_in(60));
    FAIL() << "wait() came back";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("failed at item 0 of stream \"test\": the peer is gone"));
  }
  EXPECT_EQ(before.failure(), nullptr);
  EXPECT_FALSE(later);
}

/// Work on a destroyed stream still runs, also if it waits for a stream that was destroyed before.
TEST_F(FakeCudaStreams, ThatGoLeaveTheirWorkBehind) {
  std::atomic<int> ran{0};
  HostEvent never;
  auto other = device->make_stream("other");
  other->wait(never.arm());
  fake_launch_stream(*other).enqueue([&] { ++ran; });
  stream->wait(other->record());
  fake_launch_stream(*stream).enqueue([&] { ++ran; });
  stream.reset();
  other.reset();
  device.reset();
  EXPECT_EQ(ran, 2);
}

TEST_F(FakeCudaStreams, OfAnotherDeviceAreRefused) {
  const auto host = make_host_device();
  const auto of_host = host->make_stream("host");
  const TensorView value = place(DType::f32, {1});
  EXPECT_THROW(device->fill(value, 1, *of_host), Error);
  EXPECT_THROW(fake_launch_stream(*of_host), Error);
}

} // namespace

std::vector<std::string> streams_to_test() {
  return {"fake"};
}

std::unique_ptr<StreamsUnderTest> make_streams(const std::string&, std::string&) {
  return std::make_unique<FakeStreams>();
}

} // namespace triax::test
