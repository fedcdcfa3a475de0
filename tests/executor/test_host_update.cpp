// SPDX-License-Identifier: Apache-2.0
// Updates on the host: gradients that arrive and weights that leave block by block, on a device whose streams are late
// and whose memory the host cannot access.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "device/fake_cuda.hpp"
#include "executor/host_update.hpp"

namespace triax::executor {
namespace {

class NoOperations final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  using KernelSet::supports;
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}
};

/// Two parameters in the first stage and one in the second, which blocks of 64 elements divide.
class UpdatesOnTheHost : public test::FakeCuda {
 protected:
  static constexpr std::array<std::int64_t, 3> kElements = {100, 40, 200};
  static constexpr float kRounded = 1.0F + 1.0F / 512; // 1 in bf16, ties to even

  UpdatesOnTheHost() {
    layout_.add_stage(0, std::array<OffloadLayout::Updated, 2>{{{0, kElements[0]}, {1, kElements[1]}}});
    layout_.add_stage(1, std::array<OffloadLayout::Updated, 1>{{{2, kElements[2]}}});
    for (const std::int64_t elements : kElements) {
      ParameterShard& shard = shards_.emplace_back();
      shard.gradient = place(DType::f32, {elements});
      shard.working = place(DType::bf16, {elements});
    }
  }

  void begin(DType sent) {
    const StagedTypes types{DType::f32, DType::bf16, sent};
    RankMemory counted;
    stage_pieces(layout_, types, shards_, counted);
    rank_memory_ = RankMemory::allocated(*device, counted, {}, *stream);
    pieces_ = stage_pieces(layout_, types, shards_, rank_memory_);
    update_ = std::make_unique<HostUpdate>(*device, *stream, HostKernels{kernels_, *host_, *host_stream_},
                                           layout_.blocks(), pieces_);
  }

  /// Gradients are written late, and the host writes a pattern for each block.
  void step(std::uint16_t pattern, float gradient, float received) {
    for (const ParameterShard& shard : shards_) device->fill(shard.gradient, static_cast<double>(gradient), *stream);
    for (std::size_t block = 0; block < layout_.blocks().size(); ++block) {
      update_->acquire(block, deadline_in(60));
      const OffloadBlock& of = layout_.blocks()[block];
      for (std::size_t i = of.first; i < of.end; ++i) {
        const TensorView &arrived = pieces_[i].received, &updated = pieces_[i].updated;
        EXPECT_TRUE(std::all_of(arrived.as<float>(), arrived.as<float>() + arrived.elements(),
                                [&](float value) { return value == received; }))
            << "block " << block;
        std::fill_n(updated.as<std::uint16_t>(), updated.elements(), pattern_of(pattern, block));
      }
      update_->release(block);
    }
  }
  static std::uint16_t pattern_of(std::uint16_t step, std::size_t block) {
    return static_cast<std::uint16_t>(step * 100 + block);
  }

  void expect_weights(std::uint16_t step) {
    for (std::size_t block = 0; block < layout_.blocks().size(); ++block) {
      const OffloadBlock& of = layout_.blocks()[block];
      for (std::size_t i = of.first; i < of.end; ++i) {
        const TensorView& weights = pieces_[i].working;
        EXPECT_EQ(values<std::uint16_t>(weights),
                  std::vector<std::uint16_t>(static_cast<std::size_t>(weights.elements()), pattern_of(step, block)))
            << "block " << block;
      }
    }
  }

  OffloadLayout layout_{{.tensors = 1, .element_bytes = 4, .buffer_bytes = 256}};
  std::vector<ParameterShard> shards_;
  RankMemory rank_memory_;
  std::vector<StagedPiece> pieces_;
  NoOperations kernels_;
  std::unique_ptr<Device> host_ = make_host_device();
  std::unique_ptr<Stream> host_stream_ = host_->make_stream("host");
  std::unique_ptr<HostUpdate> update_;
};

constexpr std::uint64_t kAll = 340; // elements

TEST_F(UpdatesOnTheHost, SendGradientsAndWeightsOfEachBlock) {
  ASSERT_GT(layout_.blocks().size(), HostUpdate::kBuffers) << "buffers are used again";
  begin(DType::f32);
  for (std::uint16_t number = 1; number <= 3; ++number) {
    step(number, kRounded * number, kRounded * number);
    expect_weights(number);
    EXPECT_EQ(update_->traffic(), (HostTraffic{number * kAll * 4, number * kAll * 2}));
  }
}

TEST_F(UpdatesOnTheHost, RoundGradientsOnTheDevice) {
  begin(DType::bf16);
  for (std::uint16_t number = 1; number <= 2; ++number) {
    step(number, kRounded, 1);
    expect_weights(number);
    EXPECT_EQ(update_->traffic(), (HostTraffic{number * kAll * 2, number * kAll * 2}));
  }
}

/// Three buffers for any number of blocks.
TEST_F(UpdatesOnTheHost, HaveBuffersOfTheLargestBlocks) {
  begin(DType::bf16);
  constexpr std::size_t kPerBlock = 64 * (4 + 2 + 2); // received, updated, sent; each aligned to 256 bytes
  EXPECT_GE(rank_memory_.hosted_staging.used(), HostUpdate::kBuffers * kPerBlock);
  EXPECT_LE(rank_memory_.hosted_staging.used(), HostUpdate::kBuffers * 2 * 3 * Arena::kAlignment);
  EXPECT_LE(rank_memory_.offload.used(), HostUpdate::kBuffers * 2 * Arena::kAlignment);
  begin(DType::f32);
  EXPECT_EQ(rank_memory_.offload.used(), 0u) << "gradients are sent as they are";
}

/// After a checkpoint is loaded.
TEST_F(UpdatesOnTheHost, MakeWeightsFromMasterWeights) {
  begin(DType::f32);
  for (std::size_t block = 0; block < layout_.blocks().size(); ++block) {
    const OffloadBlock& of = layout_.blocks()[block];
    std::vector<ParameterShard> masters;
    for (std::size_t i = of.first; i < of.end; ++i) {
      ParameterShard& shard = masters.emplace_back();
      shard.master = place(DType::f32, {layout_.pieces()[i].count}, MemoryKind::pinned);
      std::fill_n(shard.master.as<float>(), shard.master.elements(), 2.5F);
    }
    update_->refresh(block, masters, deadline_in(60));
  }
  constexpr std::uint16_t kBits = 0x4020; // 2.5 in bf16
  for (const ParameterShard& shard : shards_) EXPECT_THAT(values<std::uint16_t>(shard.working), testing::Each(kBits));
  EXPECT_EQ(update_->traffic(), HostTraffic{}) << "counts optimizer steps";
}

} // namespace
} // namespace triax::executor
