// SPDX-License-Identifier: Apache-2.0
// Tests for the streams of every device that has streams (stream_suite.hpp). They do not depend on the speed of the
// machine.
#include "support/stream_suite.hpp"

#include <gmock/gmock.h>

#include "triax/error.hpp"
#include "triax/lazy_load_guard.hpp"

namespace triax::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Appends its number to a list when it is called for the `calls`-th time.
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

/// Fires an event when it has been polled a number of times.
class Firing final : public ProgressSource {
 public:
  Firing(HostEvent& event, int calls) : event_(event), calls_(calls) {}
  void progress() noexcept override {
    if (--calls_ == 0) event_.fire();
  }

 private:
  HostEvent& event_;
  int calls_;
};

TEST_P(StreamSuite, AnEventFiresWhenTheWorkBeforeItIsDone) {
  keep_busy(*stream);
  const Event event = stream->record();
  device->progress();
  EXPECT_FALSE(event.fired());
  let_end();
  device->wait(event, deadline_in(60));
  EXPECT_TRUE(event.fired());
  EXPECT_EQ(event.failure(), nullptr);
}

TEST_P(StreamSuite, AWaitHasADeadline) {
  keep_busy(*stream);
  EXPECT_THROW(device->wait(stream->record(), deadline_in(0.05)), Error);
  device->set_default_timeout(0.05);
  try {
    stream->ready();
    FAIL() << "ready() came back";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stream test: timed out"));
  }
  device->set_default_timeout(60);
  let_end();
  stream->ready();
}

TEST_P(StreamSuite, AWaitReadsTheAbort) {
  keep_busy(*stream);
  device->abort_flag().raise("rank 3 was lost");
  EXPECT_THROW(stream->ready(), Error);
  EXPECT_THROW(device->wait(stream->record(), deadline_in(60)), Error);
}

TEST_P(StreamSuite, OneStreamWaitsForAnother) {
  const auto other = device->make_stream("other");
  const TensorView value = place(DType::f32, {1}), copy = place(DType::f32, {1});
  device->fill(value, 1, *stream);
  finish();
  keep_busy(*stream);
  device->fill(value, 2, *stream);
  other->wait(stream->record());
  device->copy(copy, value, *other);
  const Event copied = other->record();
  EXPECT_FALSE(copied.fired());
  let_end();
  device->wait(copied, deadline_in(60));
  EXPECT_EQ(values<float>(copy), (std::vector<float>{2}));
}

TEST_P(StreamSuite, WaitForAHostEventHoldsLaterWork) {
  const TensorView value = place(DType::f32, {1});
  HostEvent blocker;
  Firing firing(blocker, 20);
  stream->wait(blocker.arm());
  device->add_source(firing);
  device->fill(value, 3, *stream); // polls here if streams cannot wait for the host
  finish();
  EXPECT_TRUE(blocker.idle()) << "the fill did not wait";
  device->remove_source(firing);
  EXPECT_EQ(values<float>(value), (std::vector<float>{3}));
}

/// Loading a kernel may wait for all running work, so that work must not wait for this thread.
TEST_P(StreamSuite, WorkThatMayBeNewWaitsOnTheHost) {
  find_extension<LazyLoadGuard>(*device)->set_may_load_modules(true);
  std::vector<int> done;
  Writing task(done, 1, 5);
  const TensorView value = place(DType::f32, {1});
  stream->post(task);
  device->fill(value, 3, *stream);
  EXPECT_THAT(done, ElementsAre(1));
  EXPECT_EQ(values<float>(value), (std::vector<float>{3}));
}

TEST_P(StreamSuite, AnEventBehindNewWorkIsWaitedForElsewhere) {
  const auto other = device->make_stream("other");
  const TensorView value = place(DType::i32, {1}), copy = place(DType::i32, {1});
  std::vector<int> done;
  Writing task(done, 1, 5);
  device->fill(value, 1, *stream);
  find_extension<LazyLoadGuard>(*device)->set_may_load_modules(true);
  stream->post(task);
  other->wait(stream->record());
  EXPECT_TRUE(done.empty()) << "record() needs_progress";
  device->copy(copy, value, *other);
  EXPECT_THAT(done, ElementsAre(1)) << "the copy is on a stream before what it waits for";
  device->wait(other->record(), deadline_in(60));
  EXPECT_EQ(values<int>(copy), (std::vector<int>{1}));
}

TEST_P(StreamSuite, AnEventBehindAHostEventWaitsForIt) {
  HostEvent blocker;
  stream->wait(blocker.arm());
  const Event behind = stream->record();
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_FALSE(behind.fired());
  blocker.fire();
  device->wait(behind, deadline_in(60));
}

TEST_P(StreamSuite, AHostTaskWaitsForTheDeviceWorkBeforeIt) {
  std::vector<int> done;
  Writing task(done, 1, 3);
  keep_busy(*stream);
  stream->post(task);
  for (int i = 0; i < 100; ++i) device->progress();
  EXPECT_TRUE(done.empty());
  let_end();
  stream->ready();
  EXPECT_THAT(done, ElementsAre(1));
}

TEST_P(StreamSuite, DeviceWorkWaitsForTheHostTaskBeforeIt) {
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
  EXPECT_EQ(values<int>(value), (std::vector<int>{42})); // not to pinned memory: must not stop the progress loop
}

TEST_P(StreamSuite, HostTasksAndDeviceWorkTakeTurns) {
  std::vector<int> done;
  std::vector<std::unique_ptr<Writing>> tasks;
  const TensorView sum = place(DType::i32, {1}), one = place(DType::i32, {1});
  device->fill(sum, 0, *stream);
  device->fill(one, 1, *stream);
  std::vector<int> expected;
  for (int i = 1; i <= 1500; ++i) { // more than the stream's initial capacity
    tasks.push_back(std::make_unique<Writing>(done, i, i % 3 + 1));
    stream->post(*tasks.back());
    device->add(sum, one, *stream);
    expected.push_back(i);
  }
  stream->ready();
  EXPECT_EQ(done, expected);
  EXPECT_EQ(values<int>(sum), (std::vector<int>{1500}));
}

TEST_P(StreamSuite, AStreamWaitsForHostWorkOfAnother) {
  const auto other = device->make_stream("other");
  std::vector<int> done;
  Writing first(done, 1, 10), second(done, 2);
  other->post(first);
  stream->wait(other->record());
  stream->post(second);
  stream->ready();
  EXPECT_THAT(done, ElementsAre(1, 2));
}

/// The copy may block until its stream comes to it, and only this thread can do what the other stream waits for.
TEST_P(StreamSuite, ACopyOfPageableMemoryWaitsForHostWorkOfAnotherStream) {
  const auto other = device->make_stream("other");
  const TensorView value = place(DType::i32, {1});
  HostEvent blocker;
  Firing firing(blocker, 20);
  other->wait(blocker.arm());
  device->add_source(firing);
  device->fill(value, 3, *other); // polls here if streams cannot wait for the host
  stream->wait(other->record());
  EXPECT_EQ(values<int>(value), (std::vector<int>{3})); // to pageable memory
  EXPECT_TRUE(blocker.idle());
  device->remove_source(firing);
}

TEST_P(StreamSuite, AFailedEventAbortsTheRankAndHoldsTheQueue) {
  HostEvent blocker;
  std::vector<int> done;
  Writing task(done, 1);
  stream->wait(blocker.arm());
  stream->post(task);
  blocker.fail("rank 1 went away");
  try {
    stream->ready();
    FAIL() << "ready() came back";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "rank 1 went away");
  }
  EXPECT_TRUE(device->abort_flag().raised());
  EXPECT_TRUE(done.empty()) << "a task ran on data that never came";
  stream.reset(); // before its task; opens the gate that the GPU waits for
  EXPECT_THAT(done, ElementsAre(-1));
}

TEST_P(StreamSuite, EventsAreUsedAgainAndFireInOrder) {
  std::vector<Event> events;
  keep_busy(*stream);
  for (int i = 0; i < 200; ++i) events.push_back(stream->record()); // the native stream has capacity for these
  EXPECT_FALSE(events.front().fired());
  let_end();
  device->wait(events.back(), deadline_in(60));
  for (const Event& event : events) EXPECT_TRUE(event.fired());
  for (int i = 0; i < 1000; ++i) device->wait(stream->record(), deadline_in(60));
  for (const Event& event : events) EXPECT_TRUE(event.fired()) << "an old event forgot that it had fired";
}

TEST_P(StreamSuite, ReportTheActionBegun) {
  EXPECT_EQ(stream->current(), kNoAction);
  stream->begin(12, "0F3");
  EXPECT_EQ(stream->current(), 12u);
  stream->end(12);
  EXPECT_EQ(stream->current(), kNoAction);
}

INSTANTIATE_TEST_SUITE_P(Of, StreamSuite, testing::ValuesIn(streams_to_test()),
                         [](const auto& with) { return with.param; });

} // namespace
} // namespace triax::test
