// SPDX-License-Identifier: Apache-2.0
// The pool: every item runs once, with any number of threads; exceptions; sleeping and waking.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "pool.hpp"
#include "triax/error.hpp"

namespace triax::kernels_cpu {
namespace {

class PoolTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = make_host_device();
};

TEST_F(PoolTest, RunsEveryItemOnce) {
  for (int threads = 1; threads <= 5; ++threads) {
    Pool pool(threads, ProgressPoll(*device_));
    for (const int items : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(100);
      std::atomic<bool> in_range{true};
      pool.run(items, [&](std::int64_t item, int thread) {
        runs[static_cast<std::size_t>(item)]++;
        if (thread < 0 || thread >= threads) in_range = false;
      });
      for (int i = 0; i < 100; ++i) EXPECT_EQ(runs[static_cast<std::size_t>(i)], i < items ? 1 : 0);
      EXPECT_TRUE(in_range);
    }
  }
}

/// Runs in a separate process that may not start threads.
[[noreturn]] void make_without_threads() {
  const rlimit none{0, 0};
  const bool limited = ::setrlimit(RLIMIT_NPROC, &none) == 0 && (::geteuid() != 0 || ::setuid(65534) == 0);
  const std::unique_ptr<Device> device = make_host_device();
  try {
    const Pool pool(3, ProgressPoll(*device));
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    ::_exit(limited ? 3 : 1);
  }
  ::_exit(1);
}

TEST(PoolFails, ReportsAThreadThatCannotBeStarted) {
  EXPECT_EXIT(make_without_threads(), testing::ExitedWithCode(3),
              "kernels-cpu: thread 2 of 3 could not be started: Resource temporarily unavailable\n"
              "  allow this process more threads");
}

TEST_F(PoolTest, ManyShortCallsInARow) {
  Pool pool(4, ProgressPoll(*device_));
  std::int64_t sum = 0;
  for (int call = 0; call < 20000; ++call) {
    std::atomic<std::int64_t> part{0};
    pool.run(3, [&](std::int64_t item, int) { part += item + 1; });
    sum += part;
  }
  EXPECT_EQ(sum, 20000 * 6);
}

TEST_F(PoolTest, WakesThreadsThatSleep) {
  Pool pool(3, ProgressPoll(*device_));
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // Completes only if all three threads take part.
    std::atomic<int> arrived{0};
    pool.run(3, [&](std::int64_t, int) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 3);
  }
}

TEST_F(PoolTest, HandsAnExceptionToTheCaller) {
  Pool pool(3, ProgressPoll(*device_));
  for (const int bad : {0, 17, 39}) {
    const auto fails = [&] {
      pool.run(40, [&](std::int64_t item, int) {
        if (item == bad) throw std::runtime_error("item " + std::to_string(item));
      });
    };
    try {
      fails();
      ADD_FAILURE() << "no exception for item " << bad;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "item " + std::to_string(bad));
    }
    std::atomic<int> items{0};
    pool.run(40, [&](std::int64_t, int) { ++items; });
    EXPECT_EQ(items, 40); // the next call runs all items
  }
}

class CountingSource final : public ProgressSource {
 public:
  void progress() noexcept override { ++calls; }
  int calls = 0;
};

TEST_F(PoolTest, PollsTransportsBetweenItemsButNotAtEach) {
  CountingSource source;
  device_->add_source(source);
  for (const int threads : {1, 2}) {
    source.calls = 0;
    Pool pool(threads, ProgressPoll(*device_));
    pool.run(50, [&](std::int64_t, int) {
      const auto end = Clock::now() + std::chrono::microseconds(200);
      while (Clock::now() < end) {
      }
    });
    EXPECT_GE(source.calls, 1);
    const int before = source.calls;
    const auto start = Clock::now();
    pool.run(100000, [](std::int64_t, int) {});
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    EXPECT_LE(source.calls - before, us / 50 + 2);
  }
  device_->remove_source(source);
}

} // namespace
} // namespace triax::kernels_cpu
