// SPDX-License-Identifier: Apache-2.0
// Updates on the host that are one step late, on a device whose streams are late and whose memory the host cannot
// access: they overlap with work of the device, and nothing is used too early.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "device/fake_cuda.hpp"
#include "executor/delayed_update.hpp"

namespace triax::executor {
namespace {

class NoHostOperations final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  using KernelSet::supports;
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}
};

/// Two parameters in the first stage and one in the second, which blocks of 64 elements divide.
class UpdatesWithADelay : public test::FakeCuda {
 protected:
  static constexpr std::array<std::int64_t, 3> kElements = {100, 40, 200};
  static constexpr double kTimeout = 60;
  static constexpr std::uint16_t kOne = 0x3F80, kTwo = 0x4000; // in bf16

  UpdatesWithADelay() {
    layout_.add_stage(0, std::array<OffloadLayout::Updated, 2>{{{0, kElements[0]}, {1, kElements[1]}}});
    layout_.add_stage(1, std::array<OffloadLayout::Updated, 1>{{{2, kElements[2]}}});
    for (const std::int64_t elements : kElements) {
      ParameterShard& shard = shards_.emplace_back();
      shard.gradient = place(DType::f32, {elements});
      shard.working = place(DType::bf16, {elements});
      device->fill(shard.working, 1, *stream);
    }
  }

  void make(DType sent, DelayedUpdate::Update update) {
    const StagedTypes types{DType::f32, DType::bf16, sent};
    RankMemory counted;
    stage_all_pieces(layout_, types, shards_, counted);
    rank_memory_ = RankMemory::allocated(*device, counted, {}, *stream);
    pieces_ = stage_all_pieces(layout_, types, shards_, rank_memory_);
    update_ = std::make_unique<DelayedUpdate>(*device, *stream, HostKernels{kernels_, *host_, *host_stream_},
                                              layout_.blocks(), pieces_);
    update_->set_update(std::move(update), kTimeout);
  }

  void fill_gradients(double value) {
    for (const ParameterShard& shard : shards_) device->fill(shard.gradient, value, *stream);
  }
  void write_weights(std::size_t block, std::uint16_t bits) const {
    const OffloadBlock& of = layout_.blocks()[block];
    for (std::size_t i = of.first; i < of.end; ++i)
      std::fill_n(pieces_[i].updated.as<std::uint16_t>(), pieces_[i].updated.elements(), bits);
  }
  bool has_received(std::size_t block, float value) const {
    const OffloadBlock& of = layout_.blocks()[block];
    for (std::size_t i = of.first; i < of.end; ++i) {
      const auto* const received = pieces_[i].received.as<float>();
      if (!std::all_of(received, received + pieces_[i].received.elements(), [&](float at) { return at == value; }))
        return false;
    }
    return true;
  }
  void expect_weights(std::uint16_t bits) {
    for (const ParameterShard& shard : shards_) EXPECT_THAT(values<std::uint16_t>(shard.working), testing::Each(bits));
  }
  void expect_copy_of_read_weights(std::uint16_t bits) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const TensorView copy = update_->read_weights(i);
      EXPECT_THAT(std::vector(copy.as<std::uint16_t>(), copy.as<std::uint16_t>() + copy.elements()),
                  testing::Each(bits));
    }
  }

  OffloadLayout layout_{{.tensors = 1, .element_bytes = 4, .buffer_bytes = 256}};
  std::vector<ParameterShard> shards_;
  RankMemory rank_memory_;
  std::vector<StagedPiece> pieces_;
  NoHostOperations kernels_;
  std::unique_ptr<Device> host_ = make_host_device();
  std::unique_ptr<Stream> host_stream_ = host_->make_stream("host");
  std::unique_ptr<DelayedUpdate> update_;
};

/// The host does not complete a block before the device has begun the next step, which reads the weights of before.
TEST_F(UpdatesWithADelay, RunWhileTheDeviceComputesTheNextStep) {
  std::promise<void> next_step;
  const std::shared_future<void> begun = next_step.get_future().share();
  bool overlaps = true; // read after apply()
  make(DType::f32, [&, begun](std::size_t block, const StepScalars&) {
    overlaps &= begun.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    write_weights(block, kTwo);
  });
  fill_gradients(1);
  update_->begin({});
  EXPECT_TRUE(update_->is_pending());
  expect_weights(kOne); // waits for the compute stream
  test::fake_launch_stream(*stream).enqueue([&next_step] { next_step.set_value(); });
  update_->apply();
  expect_weights(kTwo);
  EXPECT_TRUE(overlaps);
  EXPECT_FALSE(update_->is_pending());
  update_->apply(); // nothing is pending
  EXPECT_EQ(update_->traffic(), (HostTraffic{340 * 4, 340 * 2}));
}

/// Passes of the next step write gradients while those of this one leave.
TEST_F(UpdatesWithADelay, UseTheGradientsAndScalarsOfTheirStep) {
  for (const DType sent : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name_of(sent));
    float expected = 0;
    std::int64_t expected_step = 0;
    int wrong = 0;
    make(sent, [&](std::size_t block, const StepScalars& scalars) {
      wrong += has_received(block, expected) && scalars.step == expected_step ? 0 : 1;
      write_weights(block, kTwo);
    });
    fill_gradients(1);
    for (int step = 1; step <= 4; ++step) {
      update_->apply();
      expected = static_cast<float>(step);
      expected_step = step;
      StepScalars scalars;
      scalars.step = step;
      update_->begin(scalars);
      scalars.step = -1;
      update_->keep_gradients();
      fill_gradients(step + 1);
    }
    update_->apply();
    expect_weights(kTwo); // before the memory of these updates is freed
    EXPECT_EQ(wrong, 0);
  }
}

/// A checkpoint has the updates of the host, and the weights without the last one.
TEST_F(UpdatesWithADelay, StayPendingWhenTheyAreFinished) {
  std::vector<int> updates(layout_.blocks().size());
  make(DType::f32, [&](std::size_t block, const StepScalars&) {
    ++updates[block];
    write_weights(block, kTwo);
  });
  update_->finish();
  expect_copy_of_read_weights(kOne);
  fill_gradients(1);
  update_->begin({});
  for (int times = 0; times < 2; ++times) {
    update_->finish();
    EXPECT_THAT(updates, testing::Each(1));
    expect_copy_of_read_weights(kOne);
    expect_weights(kOne);
    EXPECT_TRUE(update_->is_pending());
  }
  update_->apply();
  expect_weights(kTwo);
  update_->finish();
  expect_copy_of_read_weights(kTwo);
}

/// After a checkpoint is loaded: the master weights have the pending update, and the read weights do not.
TEST_F(UpdatesWithADelay, ContinueFromACheckpoint) {
  make(DType::f32, [](std::size_t, const StepScalars&) {});
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const TensorView read = update_->read_weights(i);
    std::fill_n(read.as<std::uint16_t>(), read.elements(), kOne);
  }
  for (std::size_t block = 0; block < layout_.blocks().size(); ++block) {
    const OffloadBlock& of = layout_.blocks()[block];
    std::vector<ParameterShard> masters;
    for (std::size_t i = of.first; i < of.end; ++i) {
      ParameterShard& shard = masters.emplace_back();
      shard.master = place(DType::f32, {layout_.pieces()[i].count}, MemoryKind::pinned);
      std::fill_n(shard.master.as<float>(), shard.master.elements(), 2.0F);
    }
    update_->refresh(block, masters, deadline_in(kTimeout));
  }
  expect_weights(kTwo);
  EXPECT_FALSE(update_->is_pending());
  update_->restore(deadline_in(kTimeout));
  expect_weights(kOne);
  EXPECT_TRUE(update_->is_pending());
  update_->apply();
  expect_weights(kTwo);
}

TEST_F(UpdatesWithADelay, ThatFailEndTheNextWait) {
  make(DType::f32, [](std::size_t block, const StepScalars&) {
    if (block == 1) throw Error("cannot update", "in a test");
  });
  fill_gradients(1);
  update_->begin({});
  try {
    update_->apply();
    ADD_FAILURE() << "it has applied an update that failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cannot update");
    EXPECT_THAT(error.where(), testing::HasSubstr("the update on the host, in a test"));
  }
  EXPECT_THROW(update_->finish(), Error);
}

/// Another rank has failed while the host updates: the wait ends at once, and the thread with its block.
TEST_F(UpdatesWithADelay, EndWithTheRank) {
  std::promise<void> aborted;
  const std::shared_future<void> until = aborted.get_future().share();
  make(DType::f32, [until](std::size_t, const StepScalars&) { until.wait_for(std::chrono::seconds(30)); });
  fill_gradients(1);
  update_->begin({});
  device->abort_flag().raise("rank 1 has failed");
  try {
    update_->apply();
    ADD_FAILURE() << "it waits for an aborted rank";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("rank 1 has failed"));
  }
  aborted.set_value();
  update_.reset();
}

} // namespace
} // namespace triax::executor
