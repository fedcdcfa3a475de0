// SPDX-License-Identifier: Apache-2.0
// Inputs of recomputation groups on the host: where their memory is, and the order of the copies, on a device whose
// streams are late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "device/fake_cuda.hpp"
#include "executor/input_offload.hpp"
#include "executor/state_of.hpp"
#include "support/error_of.hpp"

namespace triax::executor {
namespace {

using schedule::Kind;
using ::testing::HasSubstr;

constexpr std::int64_t kElements = 24; // of the sample model's stream

/// Two groups in stage 0, whose last one R repeats, and one group in stage 1, which ends with a layer that keeps all.
test::SampleModel model_of_three_blocks() {
  test::SampleModel model = test::sample_model();
  model.specs.insert(model.specs.begin() + 3, model.specs[2]);
  model.specs[3].name = "third";
  model.specs[3].params = {test::sample_param("a", {4}, 41)};
  return model;
}

test::SampleRank rank_of(const test::SampleModel& model, bool on_host) {
  return test::SampleRank(model, 2, 2, "0F0 0F1 1F0 1F1 1B0 1B1 0B0 0I1 0W1", {}, Layout::ptd(1, 1, 1), Recompute::full,
                          schedule::Sharding::none, {}, {true, false}, on_host);
}

std::size_t pinned_activations(const test::SampleRank& rank) {
  std::size_t out = 0;
  for (const RankMemory::Row& row : rank.state->memory({}))
    if (row.what == std::string("activations") && row.kind == MemoryKind::pinned) out += row.bytes;
  return out;
}

TEST(HostedInputs, HaveSlotsInPinnedMemoryAndBuffersOfTheDevice) {
  const test::SampleModel model = model_of_three_blocks();
  EXPECT_EQ(pinned_activations(rank_of(model, false)), 0u);
  test::SampleRank rank = rank_of(model, true);
  constexpr std::size_t kGroups = 3, kMicrobatches = 2;
  EXPECT_EQ(pinned_activations(rank), kGroups * kMicrobatches * Arena::aligned(kElements * sizeof(float)));
  rank.allocate();
  const HostedStage first = rank.state->stage(0).hosted_stage(), second = rank.state->stage(1).hosted_stage();
  ASSERT_EQ(first.groups.size(), 2u);
  ASSERT_EQ(second.groups.size(), 1u);
  std::set<void*> slots, buffers;
  for (const HostedGroup& group : {first.groups[0], first.groups[1], second.groups[0]}) {
    ASSERT_EQ(group.size(), 1u);
    EXPECT_EQ(group[0].slots.size(), kMicrobatches);
    for (const TensorView& slot : group[0].slots) {
      EXPECT_EQ(slot.shape(), Shape{kElements});
      slots.insert(slot.data());
    }
    for (std::size_t buffer = 0; buffer < kHostCopyBuffers; ++buffer) {
      buffers.insert(group[0].leaving[buffer].data());
      buffers.insert(group[0].arriving[buffer].data());
    }
  }
  EXPECT_EQ(slots.size(), kGroups * kMicrobatches);
  EXPECT_EQ(buffers.size(), 2 * kHostCopyBuffers) << "all groups use the same buffers";
  EXPECT_FALSE(slots.contains(nullptr) || buffers.contains(nullptr));
}

/// A table of ranks has the same columns for all, also where a rank recomputes nothing.
TEST(HostedInputs, HaveARowOnEveryRankOfTheRun) {
  const test::SampleModel model = model_of_three_blocks();
  const test::SampleRank rank(model, 1, 1, "0F0 0B0", {}, Layout::ptd(1, 1, 1), Recompute::none,
                              schedule::Sharding::none, {}, {}, true);
  const std::vector<RankMemory::Row> rows = rank.state->memory({});
  const auto row = std::ranges::find_if(rows, [](const RankMemory::Row& of) {
    return of.what == std::string("activations") && of.kind == MemoryKind::pinned;
  });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->bytes, 0u);
}

/// The parts of the row "activations" are those of the device.
TEST(HostedInputs, AreNotPartsOfTheActivations) {
  const test::SampleModel model = model_of_three_blocks();
  const test::SampleRank rank = rank_of(model, true);
  std::size_t parts = 0, device = 0;
  for (const ActivationPart& part : rank.state->activation_parts()) parts += part.total();
  for (const RankMemory::Row& row : rank.state->memory({}))
    if (row.what == std::string("activations") && row.kind == MemoryKind::device) device += row.bytes;
  EXPECT_EQ(parts, device);
}

/// Runs the groups of a program as a stage does, with numbers in place of inputs.
class InputOffloadOrder : public test::FakeCuda {
 protected:
  InputOffloadOrder() {
    const auto hosted = [this](int stage, std::size_t groups) {
      HostedStage out{stage, {}};
      for (std::size_t group = 0; group < groups; ++group) out.groups.push_back({input()});
      return out;
    };
    stages_ = {hosted(0, 2), hosted(1, 1)};
  }

  HostedInput input() {
    HostedInput out;
    for (int slot = 0; slot < 2; ++slot) out.slots.push_back(place(DType::f32, {kElements}, MemoryKind::pinned));
    for (std::size_t buffer = 0; buffer < kHostCopyBuffers; ++buffer) {
      out.leaving[buffer] = leaving_.at(buffer);
      out.arriving[buffer] = arriving_.at(buffer);
    }
    return out;
  }

  static float number(int step, int stage, std::size_t group, int microbatch) {
    return static_cast<float>(step * 1000 + stage * 100 + static_cast<int>(group) * 10 + microbatch);
  }

  void forward(InputOffload& offload, const schedule::ProgramAction& action, int step) {
    if (!offload.keeps_inputs()) return;
    for (std::size_t group = 0; group < groups_of(action.stage); ++group) {
      const std::size_t buffer = offload.next_leaving();
      device->fill(leaving_[buffer], number(step, action.stage, group, action.microbatch), *stream);
      offload.keep(action.stage, group, slot_of(action));
    }
  }

  void recompute(InputOffload& offload, const schedule::ProgramAction& action, std::size_t group, int step) {
    const std::size_t buffer = offload.next_arriving(action.stage, group, slot_of(action));
    read_.push_back(place(DType::f32, {kElements}));
    device->copy(read_.back(), arriving_[buffer], *stream);
    offload.release();
    expected_.push_back(number(step, action.stage, group, action.microbatch));
  }

  void walk(InputOffload& offload, const schedule::Program& program, int step) {
    offload.begin(program);
    for (const schedule::ProgramAction& action : program.actions()) {
      if (action.kind == Kind::forward) forward(offload, action, step);
      if (action.kind == Kind::recompute) recompute(offload, action, groups_of(action.stage) - 1, step);
      if (schedule::begins_backward(action.kind))
        for (std::size_t group = groups_of(action.stage) - (program.recomputes(action.stage) ? 1 : 0); group-- > 0;)
          recompute(offload, action, group, step);
    }
  }

  void expect_numbers() {
    ASSERT_FALSE(read_.empty());
    for (std::size_t at = 0; at < read_.size(); ++at)
      EXPECT_EQ(values<float>(read_[at]), std::vector<float>(kElements, expected_[at])) << at;
  }

  std::size_t groups_of(int stage) const { return stages_[static_cast<std::size_t>(stage)].groups.size(); }
  static int slot_of(const schedule::ProgramAction& action) {
    return action.own[static_cast<std::size_t>(schedule::Pool::stash_i)];
  }

  const test::SampleModel model_ = model_of_three_blocks();
  const test::SampleRank rank_ = rank_of(model_, true);
  std::vector<TensorView> leaving_ = {place(DType::f32, {kElements}), place(DType::f32, {kElements})},
                          arriving_ = {place(DType::f32, {kElements}), place(DType::f32, {kElements})};
  std::vector<HostedStage> stages_;
  std::vector<TensorView> read_;
  std::vector<float> expected_;
};

/// An evaluation between two steps keeps nothing.
TEST_F(InputOffloadOrder, BringsBackWhatEachForwardHasKept) {
  InputOffload offload(*device, *stream, stages_, rank_.training);
  walk(offload, rank_.training, 1);
  offload.begin(rank_.evaluation);
  EXPECT_FALSE(offload.keeps_inputs());
  walk(offload, rank_.training, 2);
  EXPECT_EQ(read_.size(), 12u); // three groups of two microbatches in two steps
  expect_numbers();
}

TEST_F(InputOffloadOrder, RefusesAnotherOrder) {
  InputOffload offload(*device, *stream, stages_, rank_.training);
  offload.begin(rank_.training);
  EXPECT_THAT(test::error_of([&] { offload.next_arriving(0, 1, 0); }),
              HasSubstr("the inputs of group 1 of stage 0 are recomputed out of the program's order"));
}

} // namespace
} // namespace triax::executor
