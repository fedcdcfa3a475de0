// SPDX-License-Identifier: Apache-2.0
// kernels-sim, loaded as a plugin. The tests set no upper limit on times, because the machine may be loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plugin/loader.hpp"
#include "support/error_of.hpp"
#include "support/installation.hpp"
#include "triax/kernels.hpp"
#include "triax/rank_activity.hpp"

namespace triax {
namespace {

constexpr double kMs = 1e-3;

class SimSet : public ::testing::Test {
 protected:
  void make(double tflops, double gb_per_s, double op_us) {
    options_.set("tflops", tflops);
    options_.set("gb_per_s", gb_per_s);
    options_.set("op_us", op_us);
    set_.emplace(plugin::create<KernelSet>(library_, {options_, null_log(), layout_, 0, 1}));
    (*set_)->start(*device_);
  }
  KernelSet& set() { return **set_; }
  template <class Body>
  static double seconds(Body body) {
    const Clock::time_point began = Clock::now();
    body();
    return std::chrono::duration<double>(Clock::now() - began).count();
  }
  void multiply(int times = 1) {
    std::vector<float> d(64);
    const TensorView square(d.data(), DType::f32, {8, 8}); // 2 * 8^3 = 1024 FLOPs, 3 * 256 bytes
    for (int i = 0; i < times; ++i) set().gemm({.d = square, .a = square, .b = square}, {*stream_, {}});
  }

  const plugin::Library& library_ = plugin::load(test::plugin_file("kernels-sim"), "kernels");
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("main");
  std::optional<plugin::Instance<KernelSet>> set_;
};

TEST_F(SimSet, TakesTheTimeOfTheArithmetic) {
  make(1024 / (20 * kMs) * 1e-12, 1e9, 0);
  EXPECT_GE(seconds([&] { multiply(); }), 19.9 * kMs);
}

TEST_F(SimSet, TakesTheTimeOfTheMemoryWhereThatIsLonger) {
  make(1e9, 768 / (20 * kMs) * 1e-9, 0);
  EXPECT_GE(seconds([&] { multiply(); }), 19.9 * kMs);
}

TEST_F(SimSet, TakesTheOverheadOfEachOperation) {
  make(1e9, 1e9, 2000);
  EXPECT_GE(seconds([&] { multiply(10); }), 19.9 * kMs);
}

TEST_F(SimSet, OperationsTooShortToSleepForAddUp) {
  make(1e9, 1e9, 20);
  stream_->begin(7, "0F0");
  EXPECT_GE(seconds([&] { multiply(1000); }), 19.9 * kMs);
  stream_->end(7);
}

TEST_F(SimSet, DoesNotCompensateForTimeSpentWaiting) {
  make(1e9, 1e9, 20000);
  stream_->begin(7, "0F0");
  const double late = seconds([&] { multiply(); }) - 20 * kMs; // the next operation is shorter by this
  std::this_thread::sleep_for(std::chrono::milliseconds(1));   // as in a collective
  EXPECT_GE(seconds([&] { multiply(); }), 19.9 * kMs - late);
  stream_->end(7);
}

TEST_F(SimSet, ANewActionBeginsWithoutDebts) {
  make(1e9, 1e9, 1000);
  stream_->begin(7, "0F0");
  multiply();
  stream_->end(7);
  std::this_thread::sleep_for(std::chrono::microseconds(1500)); // within an action, this delay would be subtracted
  stream_->begin(8, "0F1");
  EXPECT_GE(seconds([&] { multiply(); }), 0.9 * kMs);
  stream_->end(8);
}

TEST_F(SimSet, MovesTransportsOnMeanwhile) {
  make(1e9, 1e9, 20000);
  struct Source final : ProgressSource {
    void progress() noexcept override { ++calls; }
    int calls = 0;
  } source;
  device_->add_source(source);
  multiply();
  device_->remove_source(source);
  EXPECT_GE(source.calls, 1);
}

/// Otherwise a watchdog would not notice an operation that takes hours.
TEST_F(SimSet, AnOperationIsOneCallToAWatchdog) {
  make(1e9, 1e9, 20000);
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  struct Source final : ProgressSource {
    void progress() noexcept override {
      values.insert(activity->progress());
      texts.insert(activity->to_text());
    }
    const RankActivity* activity = nullptr;
    std::set<std::uint64_t> values;
    std::set<std::string> texts;
  } source;
  source.activity = &activity;
  device_->add_source(source);
  multiply();
  device_->remove_source(source);
  EXPECT_EQ(source.values.size(), 1u);
  EXPECT_THAT(source.texts, ::testing::ElementsAre(::testing::HasSubstr("in gemm() of plugin ")));
}

TEST_F(SimSet, EndsWhenTheRankIsAborted) {
  make(1e9, 1e9, 1e9); // a quarter of an hour per operation
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    device_->abort_flag().raise("rank 3 was lost");
  });
  EXPECT_EQ(test::error_of([&] { multiply(); }), "rank 3 was lost");
  other.join();
}

TEST_F(SimSet, LossesAndNormsAreZero) {
  make(1e9, 1e9, 0);
  std::vector<double> loss{7, 7}, squares{7};
  std::vector<float> rows(4, 3.F);
  const TensorView four(rows.data(), DType::f32, {4});
  set().xent_loss({.loss = {loss.data(), DType::f64, {2}}, .sum_exp = four, .target_logit = four}, {*stream_, {}});
  set().sum_squares({.out = {squares.data(), DType::f64, {1}}, .x = four}, {*stream_, {}});
  EXPECT_EQ(loss, (std::vector<double>{0, 0}));
  EXPECT_EQ(squares, (std::vector<double>{0}));
}

TEST_F(SimSet, EveryStepIsTaken) {
  make(1e9, 1e9, 0);
  std::vector<double> numbers{7};
  std::int32_t first = 0;
  const TensorView number(numbers.data(), DType::f64, {1}), order(&first, DType::i32, {1});
  StepScalars now{.loss_scale = 8};
  for (int step = 1; step <= 2; ++step) {
    set().step_control({number, order, number, &now, 1, {}}, {*stream_, {}});
    EXPECT_EQ(now.step, step);
    EXPECT_EQ(now.skip, 0);
    EXPECT_EQ(now.grad_norm, 0);
  }
}

TEST_F(SimSet, TakesAnyType) {
  make(1, 1, 1);
  EXPECT_TRUE(set().supports(KernelRequest{.compute = DType::bf16, .master = DType::f32}).empty());
  EXPECT_TRUE(set().supports(KernelRequest{.compute = DType::f64, .master = DType::f64}).empty());
}

} // namespace
} // namespace triax
