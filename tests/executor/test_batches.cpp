// SPDX-License-Identifier: Apache-2.0
// The samples of a rank in each step, and where their losses are stored. Also: sizes of reused blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/batches.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Recorder final : public executor::BatchSource {
 public:
  std::vector<std::vector<std::int64_t>> asked;
  bool fails = false;
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    asked.emplace_back(samples.begin(), samples.end());
    if (fails) throw Error("a bad token");
    for (std::int64_t i = 0; i < tokens.elements(); ++i) {
      tokens.as<std::int32_t>()[i] = static_cast<std::int32_t>(samples[0] * 100 + i);
      targets.as<std::int32_t>()[i] = static_cast<std::int32_t>(samples[0] * 100 + i + 50);
    }
  }
};

TEST(Batches, GlobalMicrobatchesGoRoundTheDataRanks) {
  const executor::BatchShape shape{3, 2, 4, 2, 1}; // the second of two data ranks: 3 microbatches of 2 samples each
  EXPECT_EQ(shape.global(), 12);
  EXPECT_EQ(shape.tokens(), 48);
  const auto device = make_host_device();
  const auto stream = device->make_stream("batches");
  executor::Batches batches(shape);
  executor::RankMemory counted;
  batches.assign_memory(counted);
  executor::RankMemory memory = executor::RankMemory::allocated(*device, counted, {}, *stream);
  batches.assign_memory(memory);

  Recorder source;
  batches.stage(source, 24, *device, *stream, Deadline::max()); // third step
  EXPECT_EQ(source.asked, (std::vector<std::vector<std::int64_t>>{{26, 27}, {30, 31}, {34, 35}}));
  for (int k = 0; k < 3; ++k) {
    const executor::MicrobatchViews& views = batches.of(k);
    EXPECT_EQ(views.tokens.shape(), Shape({4, 2}));
    EXPECT_EQ(views.samples.as<std::int64_t>()[1], 27 + 4 * k);
    EXPECT_EQ(views.tokens.as<std::int32_t>()[7], (26 + 4 * k) * 100 + 7);
    EXPECT_EQ(views.targets.as<std::int32_t>()[0], (26 + 4 * k) * 100 + 50);
    EXPECT_EQ(views.result.data(), batches.losses().as<double>() + 2 * k);
  }
  EXPECT_EQ(batches.losses().elements(), 6);
  EXPECT_EQ(batches.request().elements(), 1);
  EXPECT_EQ(batches.request().data(), batches.values().as<double>() + executor::StepValues(shape).request(0));
  EXPECT_EQ(executor::StepValues(shape).loss(1, 0), batches.values().elements()) << "behind those of the first rank";
}

/// Two steps of two microbatches of one sample.
class ReadAhead : public ::testing::Test {
 protected:
  void assign(const executor::BatchInputs& inputs) {
    batches_.set_inputs(inputs);
    executor::RankMemory counted;
    batches_.assign_memory(counted);
    memory_ = executor::RankMemory::allocated(*device_, counted, {}, *stream_);
    batches_.assign_memory(memory_);
  }
  void stage(Recorder& source, std::int64_t first) {
    batches_.stage(source, first, *device_, *stream_, Deadline::max());
  }
  void read_ahead(Recorder& source, std::int64_t first) {
    batches_.read_ahead(source, first, *device_, Deadline::max());
  }
  std::int32_t token(int microbatch) const { return *batches_.of(microbatch).tokens.as<std::int32_t>(); }

  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("batches");
  executor::Batches batches_{{2, 1, 4, 1, 0}};
  executor::RankMemory memory_;
  Recorder training_, held_out_;
};

TEST_F(ReadAhead, SamplesAreReadOnce) {
  assign({});
  stage(training_, 0);
  read_ahead(training_, 2);
  EXPECT_EQ(token(0), 0); // the step that runs still has its own
  EXPECT_THAT(training_.asked, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  stage(training_, 2);
  EXPECT_EQ(training_.asked.size(), 4u);
  EXPECT_EQ(token(0), 200);
  EXPECT_EQ(token(1), 300);
}

TEST_F(ReadAhead, AnEvaluationLeavesThem) {
  assign({});
  stage(training_, 0);
  read_ahead(training_, 2);
  for (const std::int64_t first : {0, 2, 4}) {
    stage(held_out_, first);
    EXPECT_EQ(token(1), (first + 1) * 100);
  }
  EXPECT_EQ(held_out_.asked.size(), 6u);
  stage(training_, 2);
  EXPECT_EQ(training_.asked.size(), 4u);
  EXPECT_EQ(token(1), 300);
}

TEST_F(ReadAhead, OtherSamplesAreReadInTheirPlace) {
  assign({});
  read_ahead(training_, 2);
  stage(training_, 6);
  EXPECT_EQ(token(0), 600);
  stage(training_, 2);
  EXPECT_EQ(token(0), 200);
  EXPECT_EQ(training_.asked.size(), 4u);
}

TEST_F(ReadAhead, AnErrorIsThatOfTheStepWhichNeedsTheSamples) {
  assign({});
  stage(training_, 0);
  training_.fails = true;
  EXPECT_NO_THROW(read_ahead(training_, 2));
  EXPECT_THROW(stage(training_, 2), Error);
  training_.fails = false;
  stage(training_, 2);
  EXPECT_EQ(token(1), 300);
}

TEST_F(ReadAhead, ARankWithoutReadersAsksForNothing) {
  assign({.tokens = false, .targets = false});
  stage(training_, 0);
  read_ahead(training_, 2);
  stage(training_, 2);
  EXPECT_THAT(training_.asked, IsEmpty());
  EXPECT_TRUE(batches_.of(0).tokens.empty());
  EXPECT_TRUE(batches_.of(0).targets.empty());
  EXPECT_EQ(*batches_.of(1).samples.as<std::int64_t>(), 3);
}

TEST_F(ReadAhead, OnlyWhatLayersReadIsUploaded) {
  assign({.tokens = false, .targets = true});
  stage(training_, 2);
  EXPECT_TRUE(batches_.of(0).tokens.empty());
  EXPECT_EQ(*batches_.of(1).targets.as<std::int32_t>(), 350);
}

TEST(ReusedBlock, IsAsLargeAsTheLargestSetOfTensors) {
  executor::ReusedBlock counting;
  counting.tensor(DType::f32, {100});
  counting.tensor(DType::f32, {1});
  counting.restart();
  counting.tensor(DType::f64, {10});
  EXPECT_EQ(counting.peak(), 512u + 256u);

  std::vector<std::byte> block(1024);
  executor::ReusedBlock real(block.data());
  const TensorView first = real.tensor(DType::f32, {1}), second = real.tensor(DType::f32, {1});
  EXPECT_EQ(second.as<std::byte>() - first.as<std::byte>(), 256);
  real.restart();
  EXPECT_EQ(real.tensor(DType::u8, {3}).data(), first.data());
}

} // namespace
} // namespace triax
