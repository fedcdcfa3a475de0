// SPDX-License-Identifier: Apache-2.0
// When streams wait for flags of the host, and when the host delays launches instead: hardware queues that streams
// share, and writes of network cards that the GPU does not order.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "gpu.hpp"
#include "support/gpu_stand_in.hpp"

namespace triax::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kWaits = "by stream memory operations";

/// Whether work can be enqueued behind a wait for the host that has not ended. Else the host must end it first.
bool enqueues_behind_the_host(Device& device, Stream& stream) {
  HostEvent event;
  stream.wait(event.arm());
  device.set_default_timeout(0.02);
  bool enqueued = true;
  try {
    launch_stream(stream);
  } catch (const Error&) {
    enqueued = false;
  }
  device.set_default_timeout(60);
  event.fire();
  stream.ready();
  return enqueued;
}

/// A device of a process in which the GPU has so many hardware queues.
std::unique_ptr<Device> device_with_queues(const char* queues) {
  const Variable connections("CUDA_DEVICE_MAX_CONNECTIONS", queues);
  return make_device({});
}

class HostFlags : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    if (device_with_queues("32")->description().find(kWaits) == std::string::npos)
      GTEST_SKIP() << device->description();
  }
};
using HostFlagsDeathTest = Gpu; // its processes may have no flags

TEST_F(HostFlags, AreNotWaitedForByStreamsThatShareAQueue) {
  const auto with_default = device_with_queues(nullptr); // 8, two of them for libraries
  EXPECT_THAT(with_default->description(), HasSubstr("by stream memory operations (up to 6 streams)"));
  std::vector<std::unique_ptr<Stream>> streams;
  while (streams.size() < 6) {
    streams.push_back(with_default->make_stream("one more"));
    EXPECT_TRUE(enqueues_behind_the_host(*with_default, *streams.back())) << streams.size();
  }
  while (streams.size() < 9) {
    streams.push_back(with_default->make_stream("one too many"));
    EXPECT_FALSE(enqueues_behind_the_host(*with_default, *streams.back())) << streams.size();
    EXPECT_FALSE(enqueues_behind_the_host(*with_default, *streams.front())) << "it may share a queue with others";
  }
  streams.resize(6);
  EXPECT_TRUE(enqueues_behind_the_host(*with_default, *streams.front()));
}

TEST_F(HostFlags, AreForAsManyStreamsAsThereAreQueues) {
  for (const char* one_or_two : {"1", "2"}) {
    const auto few = device_with_queues(one_or_two);
    EXPECT_THAT(few->description(), Not(HasSubstr(kWaits))) << one_or_two;
    EXPECT_FALSE(enqueues_behind_the_host(*few, *few->make_stream("only"))) << one_or_two;
  }
  const auto most = device_with_queues("32");
  std::vector<std::unique_ptr<Stream>> streams;
  while (streams.size() < 30) streams.push_back(most->make_stream("one more"));
  EXPECT_TRUE(enqueues_behind_the_host(*most, *streams.back()));
  for (const char* invalid : {"", "0", "many", "33"}) {
    EXPECT_THAT(device_with_queues(invalid)->description(), HasSubstr("(up to 6 streams)")) << invalid;
  }
}

/// A native stream holds about a thousand entries. Events and waits are entries, too: without a limit, this thread
/// would block in the driver, and would not end the host work.
TEST_F(HostFlags, HaveFewEntriesBehindThem) {
  const auto other = device->make_stream("other");
  HostEvent event;
  const Event armed = event.arm();
  other->wait(armed);
  const Event pending = other->record();
  stream->wait(armed);
  launch_stream(*stream); // behind a wait for the flag
  for (int i = 0; i < 150; ++i) {
    stream->wait(pending);
    stream->record();
  }
  device->set_default_timeout(0.02);
  EXPECT_THROW(launch_stream(*stream), Error);
  device->set_default_timeout(60);
  event.fire();
  stream->ready();
  launch_stream(*stream);
}

/// cudaFree and cudaFreeHost wait for the GPU, and only this thread can end its waits.
TEST_F(HostFlags, EndBeforeMemoryIsFreed) {
  struct Firing final : ProgressSource {
    void progress() noexcept override {
      if (--polls == 0) event.fire();
    }
    HostEvent event;
    int polls = 20;
  };
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    std::unique_ptr<Memory> memory = device->allocate(256, kind);
    Firing firing;
    stream->wait(firing.event.arm());
    device->fill(place(DType::i32, {1}), 1, *stream); // behind a wait for the flag
    device->add_source(firing);
    memory.reset();
    EXPECT_TRUE(firing.event.idle()) << static_cast<int>(kind);
    device->remove_source(firing);
  }
}

/// After an abort, the host work may never end.
TEST_F(HostFlags, EndWithAnAbortBeforeMemoryIsFreed) {
  std::unique_ptr<Memory> memory = device->allocate(256, MemoryKind::pinned);
  HostEvent never;
  const auto waiting = device->make_stream("waiting");
  waiting->wait(never.arm());
  device->fill(place(DType::i32, {1}), 1, *waiting); // behind a wait for the flag
  const Event filled = waiting->record();
  device->abort_flag().raise("rank 3 was lost");
  memory.reset();
  EXPECT_TRUE(filled.fired());
}

/// The wait of a destroyed stream ends, and the stream that gets its flag still waits.
TEST_F(HostFlags, OfDestroyedStreamsAreUsedAgain) {
  for (int i = 0; i < 3; ++i) {
    HostEvent never;
    const auto dropped = device->make_stream("dropped");
    dropped->wait(never.arm());
    device->fill(place(DType::i32, {1}), 1, *dropped); // behind a wait for the flag
  }
  const TensorView value = place(DType::i32, {1});
  HostEvent event;
  const auto next = device->make_stream("next");
  next->wait(event.arm());
  device->fill(value, 7, *next);
  const Event filled = next->record();
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_FALSE(filled.fired());
  event.fire();
  device->wait(filled, deadline_in(60));
  EXPECT_EQ(values<int>(value), (std::vector<int>{7}));
}

/// In the process of a death test that has pinned memory for a thousand flags only.
[[noreturn]] void make_many_streams(Device& device) {
  bool all = true;
  for (int i = 0; i < 1100; ++i) all &= enqueues_behind_the_host(device, *device.make_stream("one of many"));
  std::fprintf(stderr, "%s\n", all ? "all enqueue" : "some do not enqueue");
  std::exit(0);
}

TEST_F(HostFlagsDeathTest, OfDestroyedStreamsNeedNoMoreMemory) {
  if (!test::is_gpu_stand_in(*device)) GTEST_SKIP() << "allocations fail on the GPU stand-in only";
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; // a new process, because the stand-in reads variables once
  const Variable connections("CUDA_DEVICE_MAX_CONNECTIONS", nullptr), wait_values("TRIAX_GPU_WAIT_VALUES", nullptr);
  const Variable second("TRIAX_GPU_FAIL", "cudaHostAlloc:2");
  EXPECT_EXIT(make_many_streams(*device), testing::ExitedWithCode(0), "all enqueue");
}

/// In the process of a death test, whose GPU has the variables of its parent: prints how its streams wait, and waits.
[[noreturn]] void print_waits(Device& device) {
  std::fprintf(stderr, "%s\n", device.description().c_str());
  const auto stream = device.make_stream("other");
  std::fprintf(stderr, "%s\n", enqueues_behind_the_host(device, *stream) ? "enqueues" : "does not enqueue");
  std::exit(0);
}

TEST_F(HostFlagsDeathTest, SeeWritesOfNetworkCards) {
  if (!test::is_gpu_stand_in(*device)) GTEST_SKIP() << "the order of writes is that of this GPU";
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; // a new process, because the stand-in reads variables once
  const Variable log("TRIAX_GPU_LOG", "1"), connections("CUDA_DEVICE_MAX_CONNECTIONS", nullptr);
  const Variable wait_values("TRIAX_GPU_WAIT_VALUES", nullptr);
  const auto expect = [this](const char* writes, const std::string& printed) {
    const Variable rdma("TRIAX_GPU_RDMA_WRITES", writes);
    EXPECT_EXIT(print_waits(*device), testing::ExitedWithCode(0), printed);
  };
  expect("ordered", "waits for a value\nenqueues");
  expect("flushed-by-waits", "waits for a value, then flushes writes of network cards\nenqueues");
  expect("flushed-by-host", "the host launches work only when earlier host work is done\ndoes not enqueue");
}

} // namespace
} // namespace triax::cuda
