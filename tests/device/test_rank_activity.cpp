// SPDX-License-Identifier: Apache-2.0
// What other threads can read about a rank: the innermost call with its plugin, and whether the rank makes progress.
#include <gmock/gmock.h>

#include <thread>

#include "triax/error.hpp"
#include "triax/kernels.hpp"
#include "triax/rank_activity.hpp"

namespace triax {
namespace {

using Kind = RankActivity::Kind;
using testing::StartsWith;

class Activity : public testing::Test {
 protected:
  RankActivity activity_;
  const RankActivity::Binding bound_{activity_};
};

TEST_F(Activity, ScopesNestAndTheInnermostIsRead) {
  EXPECT_EQ(activity_.to_text(), "");
  const ActivityScope phase(Kind::engine, "drawing the weights");
  EXPECT_EQ(activity_.to_text(), "drawing the weights");
  {
    const ActivityScope call(Kind::plugin_call, "step", "optim-x");
    std::string seen;
    std::thread([&] { seen = activity_.to_text(); }).join();
    EXPECT_EQ(seen, "in step() of plugin \"optim-x\"");
    EXPECT_EQ(activity_.kind(), Kind::plugin_call);
  }
  EXPECT_EQ(activity_.to_text(), "drawing the weights");
  EXPECT_EQ(activity_.kind(), Kind::engine);
}

/// Its destructor calls a plugin, also while an exception is in progress.
struct CallsPlugin {
  ~CallsPlugin() {
    call_plugin("abort", "comm-x", [] {});
  }
};

TEST_F(Activity, TheInnermostCallThatAnExceptionLeftIsAddedToItsLocation) {
  const auto located = [this](const auto& body) {
    try {
      call_plugin("forward", "model-x", body);
    } catch (...) {
      return activity_.with_failed_call(Error("failed", "step 2")).where();
    }
    return std::string();
  };
  const auto fail = [] { throw 42; };
  EXPECT_EQ(located(fail), "step 2, in forward() of plugin \"model-x\"");
  EXPECT_EQ(located([&] {
              call_plugin("gemm", "kernels-x", [&] {
                const ActivityScope phase(Kind::engine, "allocating memory");
                fail();
              });
            }),
            "step 2, in gemm() of plugin \"kernels-x\"");
  EXPECT_EQ(located([&] {
              const CallsPlugin at_the_end;
              call_plugin("gemm", "kernels-x", fail);
            }),
            "step 2, in gemm() of plugin \"kernels-x\"");
  EXPECT_EQ(located([&] { // a call that has returned, and an exception that a plugin has handled
              try {
                call_plugin("gemm", "kernels-x", fail);
              } catch (int) {
              }
              call_plugin("norm", "kernels-x", [] {});
              fail();
            }),
            "step 2, in forward() of plugin \"model-x\"");
  try { // not within a call
    throw 42;
  } catch (int) {
    call_plugin("abort", "comm-x", [] {}); // of a destructor or handler
  }
  EXPECT_EQ(activity_.with_failed_call(Error("failed", "step 2")).where(), "step 2");
}

TEST_F(Activity, ACallOfADestructorIsNotTheOneThatFailed) {
  try {
    const CallsPlugin at_the_end;
    throw 42;
  } catch (int) {
  }
  EXPECT_EQ(activity_.with_failed_call(Error("failed", "step 2")).where(), "step 2");
}

TEST_F(Activity, AFailedWaitIsNotBlamedOnThePluginThatWaits) {
  const std::unique_ptr<Device> device = make_host_device();
  HostEvent never;
  const Event event = never.arm();
  device->abort_flag().raise("rank 2 failed");
  try {
    call_plugin("forward", "model-x", [&] { device->wait(event, Deadline::max()); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(activity_.with_failed_call(error).where(), error.where());
  }
}

TEST_F(Activity, AFailedWaitForAPluginNamesIt) {
  try {
    const WaitScope wait("join", Deadline::max(), "comm-x");
    throw 42;
  } catch (int) {
  }
  EXPECT_EQ(activity_.with_failed_call(Error("failed", "rank 2")).where(), "rank 2, in join() of plugin \"comm-x\"");
}

TEST_F(Activity, EachScopeIsProgressAndNothingElseIs) {
  const std::uint64_t before = activity_.progress();
  EXPECT_EQ(activity_.progress(), before);
  std::uint64_t within = 0;
  {
    const ActivityScope call(Kind::plugin_call, "step", "optim-x");
    within = activity_.progress();
    EXPECT_NE(within, before);
  }
  EXPECT_NE(activity_.progress(), within);
  EXPECT_NE(activity_.progress(), before);
}

TEST_F(Activity, OtherThreadsMarkNothing) {
  const std::uint64_t before = activity_.progress();
  std::thread([] { const ActivityScope call(Kind::plugin_call, "step", "optim-x"); }).join();
  EXPECT_EQ(activity_.progress(), before);
}

TEST_F(Activity, AWaitThatPollsIsProgressAndItsTimeoutIsKept) {
  const std::unique_ptr<Device> device = make_host_device();
  HostEvent never;
  const std::uint64_t before = activity_.progress();
  EXPECT_THROW(device->wait(never.arm(), deadline_in(0)), Error);
  EXPECT_NE(activity_.progress(), before);
  EXPECT_TRUE(activity_.has_timed_out());
}

TEST_F(Activity, DoesNotCountAnErrorBeforeTheDeadlineAsTimeout) {
  const auto fail = [](Deadline deadline) {
    const WaitScope wait("join", deadline, "comm-x");
    throw Error("no memory");
  };
  EXPECT_THROW(fail(Deadline::max()), Error);
  EXPECT_FALSE(activity_.has_timed_out());
  EXPECT_THROW(fail(deadline_in(0)), Error);
  EXPECT_TRUE(activity_.has_timed_out());
}

/// Reads the activity inside a call. This test's library counts as the plugin.
struct Reading {
  const RankActivity& activity;
  std::string seen;
  void read() { seen = activity.to_text(); }
};

TEST_F(Activity, TasksAndSourcesThatAreAdvancedAreNamed) {
  struct Task final : HostTask {
    explicit Task(RankActivity& of) : reading{of, {}} {}
    bool advance() noexcept override {
      reading.read();
      return true;
    }
    Reading reading;
  } task(activity_);
  struct Source final : ProgressSource {
    explicit Source(RankActivity& of) : reading{of, {}} {}
    void progress() noexcept override { reading.read(); }
    Reading reading;
  } source(activity_);
  const std::unique_ptr<Device> device = make_host_device();
  const std::unique_ptr<Stream> stream = device->make_stream("test");
  device->add_source(source);
  stream->post(task);
  stream->ready();
  device->remove_source(source);
  EXPECT_THAT(task.reading.seen, StartsWith("in advance() of plugin \"test_device"));
  EXPECT_THAT(source.reading.seen, StartsWith("in progress() of plugin \"test_device"));
}

TEST_F(Activity, OperationsAreNamed) {
  struct Set final : KernelSet {
    explicit Set(RankActivity& of) : reading{of, {}} {}
    DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
    Refusals supports(const KernelRequest&) const override { return {}; }
    void start(Device&) override {}
    void do_add(const Add&, const OpContext&) override { reading.read(); }
    Reading reading;
  } set(activity_);
  const std::unique_ptr<Device> device = make_host_device();
  const std::unique_ptr<Stream> stream = device->make_stream("test");
  float values[3] = {};
  const TensorView x(values, DType::f32, {3});
  set.add({x, x, x}, {*stream, {}});
  EXPECT_THAT(set.reading.seen, StartsWith("in add() of plugin \"test_device"));
}

} // namespace
} // namespace triax
