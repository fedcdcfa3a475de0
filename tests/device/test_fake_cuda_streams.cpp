// Streams of the fake CUDA device behave as those of a GPU (tests/cuda/test_streams.cpp), host work too.
#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "device/fake_cuda.hpp"
#include "triax/error.hpp"

namespace triax::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Writes its number where it is told to, once it is called for the `calls`-th time.
class Writing final : public HostTask {
 public:
  Writing(std::vector<int>& done, int number, int calls = 1) : done_(done), number_(number), calls_(calls) {}
  bool advance() noexcept override {
    if (--calls_ > 0) return false;
    done_.push_back(number_);
    return true;
  }
  void dropped() noexcept override { done_.push_back(-number_); }

 private:
  std::vector<int>& done_;
  int number_, calls_;
};

class FakeCudaStreams : public FakeCuda {};

TEST_F(FakeCudaStreams, AnEventFiresWhenTheWorkBeforeItIsDone) {
  hold(*stream);
  const Event event = stream->record();
  EXPECT_EQ(event.state()->event_class(), EventState::Class::device);
  device->progress();
  EXPECT_FALSE(event.fired());
  let_end();
  device->wait(event, deadline_in(60));
  EXPECT_TRUE(event.fired());
  EXPECT_EQ(event.failure(), nullptr);
  EXPECT_TRUE(stream->record().fired());
}

TEST_F(FakeCudaStreams, AWaitHasADeadlineAndReadsTheInterrupt) {
  hold(*stream);
  EXPECT_THROW(device->wait(stream->record(), deadline_in(0.02)), Error);
  device->set_patience(0.02);
  try {
    stream->ready();
    FAIL() << "ready() came back";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stream test: not finished at its deadline"));
  }
  device->interrupt().raise("rank 3 was lost");
  EXPECT_THROW(stream->ready(), Error);
  EXPECT_THROW(device->wait(stream->record(), deadline_in(60)), Error);
  let_end();
}

TEST_F(FakeCudaStreams, OneStreamWaitsForAnother) {
  const auto other = device->make_stream("other");
  const TensorView value = place(DType::f32, {1}), copy = place(DType::f32, {1});
  hold(*stream);
  device->fill(value, 2, *stream);
  other->wait(stream->record());
  device->copy(copy, value, *other);
  const Event copied = other->record();
  EXPECT_FALSE(copied.fired());
  let_end();
  device->wait(copied, deadline_in(60));
  EXPECT_THAT(values<float>(copy), ElementsAre(2));
}

/// What this device is for.
TEST_F(FakeCudaStreams, WhoDoesNotWaitReadsPoison) {
  const auto other = device->make_stream("other");
  const TensorView value = place(DType::i32, {1}), copy = place(DType::i32, {1});
  hold(*stream);
  device->fill(value, 2, *stream);
  device->copy(copy, value, *other);
  device->wait(other->record(), deadline_in(60));
  let_end();
  EXPECT_THAT(values<int>(copy), ElementsAre(-1));
}

TEST_F(FakeCudaStreams, AHostTaskWaitsForTheDeviceWorkBeforeIt) {
  std::vector<int> done;
  Writing task(done, 1, 3);
  hold(*stream);
  stream->post(task);
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_TRUE(done.empty());
  let_end();
  stream->ready();
  EXPECT_THAT(done, ElementsAre(1));
}

TEST_F(FakeCudaStreams, DeviceWorkWaitsForTheHostTaskBeforeIt) {
  struct Setting final : HostTask {
    explicit Setting(int* its_place) : place(its_place) {}
    bool advance() noexcept override {
      if (++calls < 5) return false;
      *place = 42;
      return true;
    }
    int* place;
    int calls = 0;
  };
  const TensorView staged = place(DType::i32, {1}, MemoryKind::pinned), value = place(DType::i32, {1});
  *staged.as<int>() = 0;
  Setting task(staged.as<int>());
  stream->post(task);
  device->upload(value, staged, *stream);
  EXPECT_THAT(values<int>(value), ElementsAre(42));
}

/// As on a GPU: a library that takes the native stream as it is runs ahead of host work.
TEST_F(FakeCudaStreams, TheNativeStreamItselfKnowsNothingOfHostWork) {
  HostEvent gate;
  stream->wait(gate.arm());
  std::atomic<int> ran{0};
  static_cast<FakeCudaStream*>(stream->native())->enqueue([&] { ++ran; });
  const Deadline deadline = deadline_in(60);
  while (ran == 0 && Clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(ran, 1);
  fake_launch_stream(*stream).enqueue([&] { ++ran; });
  const Event behind = stream->record();
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_EQ(ran, 1);
  gate.fire();
  device->wait(behind, deadline_in(60));
  EXPECT_EQ(ran, 2);
}

TEST_F(FakeCudaStreams, AnEventBehindAHostEventWaitsForIt) {
  HostEvent gate;
  stream->wait(gate.arm());
  const Event behind = stream->record();
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_FALSE(behind.fired());
  gate.fire();
  device->wait(behind, deadline_in(60));
}

TEST_F(FakeCudaStreams, HostTasksAndDeviceWorkTakeTurns) {
  std::vector<int> done, expected;
  std::vector<std::unique_ptr<Writing>> tasks;
  const TensorView sum = place(DType::i32, {1}), one = place(DType::i32, {1});
  device->fill(sum, 0, *stream);
  device->fill(one, 1, *stream);
  for (int i = 1; i <= 1100; ++i) { // more than the stream and its lane have room for to begin with
    tasks.push_back(std::make_unique<Writing>(done, i, i % 3 + 1));
    stream->post(*tasks.back());
    device->add(sum, one, *stream);
    expected.push_back(i);
  }
  stream->ready();
  EXPECT_EQ(done, expected);
  EXPECT_THAT(values<int>(sum), ElementsAre(1100));
}

TEST_F(FakeCudaStreams, AStreamWaitsForHostWorkOfAnother) {
  const auto other = device->make_stream("other");
  std::vector<int> done;
  Writing first(done, 1, 10), second(done, 2);
  other->post(first);
  stream->wait(other->record());
  stream->post(second);
  stream->ready();
  EXPECT_THAT(done, ElementsAre(1, 2));
}

TEST_F(FakeCudaStreams, AFailedEventInterruptsTheRankAndHoldsTheQueue) {
  HostEvent gate;
  std::vector<int> done;
  Writing task(done, 1);
  stream->wait(gate.arm());
  stream->post(task);
  gate.fail("rank 1 went away");
  try {
    stream->ready();
    FAIL() << "ready() came back";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "rank 1 went away");
  }
  EXPECT_TRUE(device->interrupt().raised());
  EXPECT_TRUE(done.empty()) << "a task ran on data that never came";
  stream.reset(); // before its task; opens what the device waits for
  EXPECT_THAT(done, ElementsAre(-1));
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

/// What is on a stream that goes still runs, also where it waits for another that went before.
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

TEST_F(FakeCudaStreams, TellTheActionBegun) {
  EXPECT_EQ(stream->current(), kNoAction);
  stream->begin(12, "0F3");
  EXPECT_EQ(stream->current(), 12u);
  stream->end(12);
  EXPECT_EQ(stream->current(), kNoAction);
}

TEST_F(FakeCudaStreams, OfAnotherDeviceAreRefused) {
  const auto host = make_host_device();
  const auto of_host = host->make_stream("host");
  const TensorView value = place(DType::f32, {1});
  EXPECT_THROW(device->fill(value, 1, *of_host), Error);
  EXPECT_THROW(fake_launch_stream(*of_host), Error);
}

} // namespace
} // namespace triax::test
