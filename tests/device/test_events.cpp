// SPDX-License-Identifier: Apache-2.0
// Events, the abort flag of a rank, and deadlines.
#include <gmock/gmock.h>

#include <thread>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

TEST(Event, ADefaultEventHasFired) {
  const Event event;
  EXPECT_TRUE(event.fired());
  EXPECT_EQ(event.failure(), nullptr);
}

TEST(HostEvent, FiresByGeneration) {
  HostEvent slot;
  const Event first = slot.arm();
  EXPECT_FALSE(first.fired());
  EXPECT_FALSE(slot.idle());
  slot.fire();
  EXPECT_TRUE(first.fired());
  const Event second = slot.arm();
  EXPECT_TRUE(first.fired()) << "a generation that has fired stays fired";
  EXPECT_FALSE(second.fired());
}

TEST(HostEvent, ArmingBeforeItFiredIsRefused) {
  HostEvent slot;
  slot.arm();
  EXPECT_THROW(slot.arm(), Error);
}

TEST(HostEvent, FailureBelongsToItsGeneration) {
  HostEvent slot;
  const Event good = slot.arm();
  slot.fire();
  const Event bad = slot.arm();
  slot.fail("the cable is out");
  EXPECT_EQ(good.failure(), nullptr);
  EXPECT_STREQ(bad.failure(), "the cable is out");
}

TEST(HostEvent, PublishesEarlierWritesToOtherThreads) {
  HostEvent slot;
  const Event event = slot.arm();
  int value = 0;
  std::thread firing([&] {
    value = 7;
    slot.fire();
  });
  while (!event.fired()) std::this_thread::yield();
  EXPECT_EQ(value, 7);
  firing.join();
}

TEST(AbortFlag, KeepsTheFirstReason) {
  AbortFlag flag;
  EXPECT_FALSE(flag.raised());
  EXPECT_EQ(flag.reason(), "");
  EXPECT_NO_THROW(flag.check());
  EXPECT_TRUE(flag.raise("rank 2 was lost"));
  EXPECT_FALSE(flag.raise("something later"));
  EXPECT_TRUE(flag.raised());
  EXPECT_EQ(flag.reason(), "rank 2 was lost");
  EXPECT_THROW(flag.check(), Error);
}

TEST(AbortFlag, ManyThreadsAgreeOnOneReason) {
  AbortFlag flag;
  std::thread one([&] { flag.raise("one"); });
  std::thread two([&] { flag.raise("two"); });
  while (!flag.raised()) std::this_thread::yield();
  const std::string seen = flag.reason();
  one.join();
  two.join();
  EXPECT_EQ(flag.reason(), seen);
  EXPECT_THAT(seen, testing::AnyOf("one", "two"));
}

TEST(Deadline, TreatsHugeTimeoutsAsUnlimited) {
  EXPECT_EQ(deadline_in(1e300), Deadline::max());
  EXPECT_GT(deadline_in(100), Clock::now());
  const Deadline now = deadline_in(0);
  EXPECT_LE(now, Clock::now());
}

} // namespace
} // namespace triax
