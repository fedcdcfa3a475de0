// SPDX-License-Identifier: Apache-2.0
// The communicator of a plan: what it counts for each member, and that calls are checked as in a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "executor/plan_communicator.hpp"
#include "support/error_of.hpp"

namespace triax::executor {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlanCommunicatorTest : public ::testing::Test {
 protected:
  /// A view without data, as plans use them.
  static TensorView f32(const Shape& shape) { return {nullptr, DType::f32, shape}; }
  static std::vector<std::uint64_t> bytes_out(const PlanCommunicator::Posted& posted) {
    std::vector<std::uint64_t> out;
    for (const CommStats& stats : posted.of_member) out.push_back(stats.bytes_out);
    return out;
  }

  std::unique_ptr<Device> device_ = make_plan_device(DeviceKind::host);
  std::unique_ptr<Stream> stream_ = device_->make_stream("plan");
  PlanCommunicator second_{{"tensor", "tensor.0", {4, 5, 6}, 1}};
};

/// 7 elements are parts of 2, 2 and 3: a member sends what the others reduce, and its own result to two members.
TEST_F(PlanCommunicatorTest, CountsACollectiveForEachMember) {
  second_.all_reduce(f32({7}), f32({7}), Reduce::sum, *stream_);
  EXPECT_THAT(bytes_out(second_.take()), ElementsAre(4 * (5 + 4), 4 * (5 + 4), 4 * (4 + 6)));
  second_.all_gather(f32({2}), f32({6}), *stream_);
  EXPECT_THAT(bytes_out(second_.take()), ElementsAre(16, 16, 16));
  second_.broadcast(f32({5}), 2, *stream_);
  const PlanCommunicator::Posted posted = second_.take();
  EXPECT_THAT(bytes_out(posted), ElementsAre(0, 0, 40));
  EXPECT_EQ(posted.of_member[0].bytes_in, 20u);
  EXPECT_EQ(posted.of_member[0].ops, 1u);
  EXPECT_THAT(posted.collectives, ElementsAre(Collective{Collective::Kind::broadcast, DType::f32, Reduce::sum, 2, 5}));
}

TEST_F(PlanCommunicatorTest, CountsTransfersForThisMemberOnly) {
  const Transfer set[] = {{Direction::send, 0, 0, f32({3})}, {Direction::receive, 2, 0, f32({4})}};
  second_.exchange(set, *stream_);
  const PlanCommunicator::Posted posted = second_.take();
  EXPECT_THAT(bytes_out(posted), ElementsAre(0, 12, 0));
  EXPECT_EQ(posted.of_member[1].bytes_in, 16u);
  EXPECT_THAT(posted.collectives, IsEmpty());
  EXPECT_THAT(bytes_out(second_.take()), ElementsAre(0, 0, 0));
}

TEST_F(PlanCommunicatorTest, ChecksCallsAsInARun) {
  EXPECT_THAT(error_of([this] { second_.all_gather(f32({2}), f32({5}), *stream_); }), HasSubstr("6 are needed"));
  EXPECT_THAT(error_of([this] { second_.broadcast(f32({2}), 3, *stream_); }), HasSubstr("root 3 is outside"));
}

} // namespace
} // namespace triax::executor
