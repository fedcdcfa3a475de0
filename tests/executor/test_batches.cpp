// SPDX-License-Identifier: Apache-2.0
// The samples of a rank in each step, and where their losses are stored. Also: sizes of reused blocks.
#include <gtest/gtest.h>

#include "executor/batches.hpp"

namespace triax {
namespace {

class Recorder final : public executor::BatchSource {
 public:
  std::vector<std::vector<std::int64_t>> asked;
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    asked.emplace_back(samples.begin(), samples.end());
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
  executor::RankMemory memory = executor::RankMemory::allocated(*device, counted, 0, *stream);
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
    EXPECT_EQ(views.loss.data(), batches.losses().as<double>() + 2 * k);
  }
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
