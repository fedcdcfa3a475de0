// SPDX-License-Identifier: Apache-2.0
// The host stream: an ordered queue, advanced by the progress loop.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

using testing::ElementsAre;

/// Finishes after a number of calls, and then writes its name to a list.
class CountedTask final : public HostTask {
 public:
  CountedTask(std::string name, int calls, std::vector<std::string>& done)
      : name_(std::move(name)), calls_(calls), done_(done) {}
  bool advance() noexcept override {
    if (--calls_ > 0) return false;
    done_.push_back(name_);
    return true;
  }
  void dropped() noexcept override { done_.push_back(name_ + " dropped"); }

 private:
  std::string name_;
  int calls_;
  std::vector<std::string>& done_;
};

class HostStream : public testing::Test {
 protected:
  std::unique_ptr<Device> device = make_host_device();
  std::vector<std::string> done;
  std::unique_ptr<Stream> stream = device->make_stream("main");
};

TEST_F(HostStream, HasItsName) {
  EXPECT_EQ(stream->name(), "main");
  EXPECT_EQ(stream->native(), nullptr);
}

TEST_F(HostStream, RecordsOnAnIdleStreamHaveFired) {
  EXPECT_TRUE(stream->record().fired());
}

TEST_F(HostStream, PostDoesNotRunTheTask) {
  CountedTask task("a", 1, done);
  stream->post(task);
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(device->progress());
  EXPECT_THAT(done, ElementsAre("a"));
}

TEST_F(HostStream, ItemsRunInOrderAndRecordsFireBetweenThem) {
  CountedTask a("a", 3, done), b("b", 1, done);
  stream->post(a);
  const Event after_a = stream->record();
  stream->post(b);
  const Event after_b = stream->record();
  EXPECT_FALSE(stream->advance());
  EXPECT_FALSE(stream->advance());
  EXPECT_FALSE(after_a.fired());
  EXPECT_TRUE(stream->advance());
  EXPECT_THAT(done, ElementsAre("a", "b"));
  EXPECT_TRUE(after_a.fired());
  EXPECT_TRUE(after_b.fired());
}

TEST_F(HostStream, WaitHoldsLaterWork) {
  HostEvent blocker;
  CountedTask task("a", 1, done);
  stream->wait(blocker.arm());
  const Event before = stream->record();
  stream->post(task);
  device->progress();
  EXPECT_TRUE(done.empty());
  EXPECT_FALSE(before.fired());
  blocker.fire();
  device->progress();
  EXPECT_THAT(done, ElementsAre("a"));
  EXPECT_TRUE(before.fired());
}

TEST_F(HostStream, StreamsWaitForEachOther) {
  const std::unique_ptr<Stream> other = device->make_stream("other");
  CountedTask first("first", 2, done), second("second", 1, done);
  other->post(first);
  stream->wait(other->record());
  stream->post(second);
  stream->ready();
  EXPECT_THAT(done, ElementsAre("first", "second"));
}

TEST_F(HostStream, ReadyRunsTheProgressLoopUntilAllHasFinished) {
  CountedTask task("a", 5, done);
  stream->post(task);
  stream->ready();
  EXPECT_THAT(done, ElementsAre("a"));
  EXPECT_TRUE(stream->record().fired());
}

TEST_F(HostStream, ReadyPollsSourcesToo) {
  struct Firing final : ProgressSource {
    HostEvent event;
    int calls = 0;
    void progress() noexcept override {
      if (++calls == 3) event.fire();
    }
  } source;
  device->add_source(source);
  stream->wait(source.event.arm());
  stream->ready();
  EXPECT_EQ(source.calls, 3);
  device->remove_source(source);
  device->progress();
  EXPECT_EQ(source.calls, 3);
}

TEST_F(HostStream, AFailedWaitAbortsTheRankAndHoldsTheQueue) {
  HostEvent blocker;
  CountedTask task("a", 1, done);
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
  device->progress();
  EXPECT_TRUE(done.empty()) << "a task ran on data that never came";
  stream.reset(); // destroyed before its task
  EXPECT_THAT(done, ElementsAre("a dropped"));
}

TEST_F(HostStream, WaitingForAFailedEventFails) {
  HostEvent blocker;
  const Event event = blocker.arm();
  blocker.fail("late");
  stream->wait(event);
  EXPECT_THROW(stream->ready(), Error);
}

TEST_F(HostStream, ReadyReadsTheAbort) {
  device->abort_flag().raise("stop");
  EXPECT_THROW(stream->ready(), Error);
}

TEST_F(HostStream, HoldsMoreItemsThanItsRingBeganWith) {
  HostEvent blocker;
  std::vector<CountedTask> tasks;
  tasks.reserve(500);
  stream->wait(blocker.arm());
  std::vector<std::string> expected;
  for (int i = 0; i < 500; ++i) {
    tasks.emplace_back(std::to_string(i), 1, done);
    stream->post(tasks.back());
    expected.push_back(std::to_string(i));
  }
  blocker.fire();
  stream->ready();
  EXPECT_EQ(done, expected);
}

TEST_F(HostStream, ATaskMayPostAndRunTheProgressLoop) {
  struct Posting final : HostTask {
    Posting(Device& its_device, Stream& its_stream, HostTask& its_next)
        : device(its_device), stream(its_stream), next(its_next) {}
    bool advance() noexcept override {
      stream.post(next);
      device.progress(); // must not run `next` before this task has finished
      return true;
    }
    Device& device;
    Stream& stream;
    HostTask& next;
  };
  CountedTask next("next", 1, done);
  Posting posting(*device, *stream, next);
  stream->post(posting);
  stream->ready();
  EXPECT_THAT(done, ElementsAre("next"));
}

TEST_F(HostStream, CallsDroppedOfQueuedTasks) {
  HostEvent blocker;
  CountedTask task("a", 1, done);
  stream->wait(blocker.arm());
  stream->post(task);
  stream.reset();
  EXPECT_THAT(done, ElementsAre("a dropped"));
  EXPECT_FALSE(device->progress());
}

TEST_F(HostStream, ReportsTheActionBegun) {
  EXPECT_EQ(stream->current(), kNoAction);
  stream->begin(12, "0F3");
  EXPECT_EQ(stream->current(), 12u);
  stream->end(12);
  EXPECT_EQ(stream->current(), kNoAction);
}

} // namespace
} // namespace triax
