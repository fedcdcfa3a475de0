// SPDX-License-Identifier: Apache-2.0
// When a held call begins.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "hold.hpp"

namespace triax::comm_faulty {
namespace {

using std::chrono::hours;

TEST(Hold, ALaterCallBeginsBeforeAReorderedOne) {
  Holding holding;
  Hold first(holding), second(holding);
  first.start(Until::overtaken, 1, hours(1));
  second.start(Until::now, 2, {});
  EXPECT_FALSE(first.advance());
  EXPECT_TRUE(second.advance());
  EXPECT_TRUE(first.advance());
  EXPECT_FALSE(first.is_queued());
  first.start(Until::overtaken, 3, hours(1)); // only later calls count
  EXPECT_FALSE(first.advance());
}

TEST(Hold, ACallThatNothingOvertakesBeginsAfterItsTime) {
  Holding holding;
  Hold hold(holding);
  for (const Until until : {Until::overtaken, Until::elapsed}) {
    hold.start(until, 1, {});
    EXPECT_TRUE(hold.advance());
    hold.start(until, 2, hours(1));
    EXPECT_FALSE(hold.advance());
    hold.release();
    EXPECT_TRUE(hold.advance());
  }
}

TEST(Hold, ADroppedCallWaitsForAFailureOrAnAbort) {
  Holding holding;
  HostEvent call;
  Hold hold(holding);
  hold.start(Until::aborted, 1, {});
  hold.set_call(call.arm());
  EXPECT_FALSE(hold.advance());
  call.fail("the group has failed");
  EXPECT_TRUE(hold.advance());
  hold.start(Until::aborted, 2, {});
  hold.set_call(call.arm());
  EXPECT_FALSE(hold.advance());
  holding.is_over = true;
  EXPECT_TRUE(hold.advance());
  EXPECT_FALSE(hold.is_queued());
}

TEST(Hold, KeepsItsPoolUntilTheStreamHasFinishedIt) {
  struct Pool {
    Holding holding;
    Hold hold{holding};
  };
  auto pool = std::make_shared<Pool>();
  const std::weak_ptr<Pool> alive = pool;
  Hold& hold = pool->hold;
  hold.start(Until::aborted, 1, {});
  hold.keep_alive(pool);
  pool->holding.is_over = true;
  pool.reset();
  ASSERT_FALSE(alive.expired());
  EXPECT_TRUE(hold.advance());
  EXPECT_TRUE(alive.expired());
}

} // namespace
} // namespace triax::comm_faulty
