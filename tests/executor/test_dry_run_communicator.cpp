// SPDX-License-Identifier: Apache-2.0
// Communicator of a dry run: what it counts for each member, and that calls are checked as in a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/dry_run_communicator.hpp"
#include "support/error_of.hpp"

namespace triax::executor {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DryRunCommunicatorTest : public ::testing::Test {
 protected:
  /// A view without data, as dry runs use them.
  static TensorView f32(const Shape& shape) { return {nullptr, DType::f32, shape}; }
  static std::vector<std::uint64_t> bytes_out(const DryRunCommunicator::Posted& posted) {
    std::vector<std::uint64_t> out;
    for (const CommStats& stats : posted.of_member) out.push_back(stats.bytes_out);
    return out;
  }

  std::unique_ptr<Device> device_ = make_dry_run_device(DeviceKind::host);
  std::unique_ptr<Stream> stream_ = device_->make_stream("dry run");
  DryRunCommunicator communicator_{{"tensor", "tensor.0", {4, 5, 6}, 1}}; // member 1 of 3
};

/// Reduce-scatter, then all-gather: 7 elements are split into 2, 2 and 3. A member sends the parts of the others, then
/// its own part twice.
TEST_F(DryRunCommunicatorTest, CountsACollectiveForEachMember) {
  communicator_.all_reduce(f32({7}), f32({7}), Reduce::sum, *stream_);
  EXPECT_THAT(bytes_out(communicator_.take()), ElementsAre(4 * (5 + 4), 4 * (5 + 4), 4 * (4 + 6)));
  communicator_.all_gather(f32({2}), f32({6}), *stream_);
  EXPECT_THAT(bytes_out(communicator_.take()), ElementsAre(16, 16, 16));
  communicator_.broadcast(f32({5}), 2, *stream_);
  const DryRunCommunicator::Posted posted = communicator_.take();
  EXPECT_THAT(bytes_out(posted), ElementsAre(0, 0, 40));
  EXPECT_EQ(posted.of_member[0].bytes_in, 20u);
  EXPECT_EQ(posted.of_member[0].ops, 1u);
  EXPECT_THAT(posted.collectives, ElementsAre(Collective{Collective::Kind::broadcast, DType::f32, Reduce::sum, 2, 5}));
}

TEST_F(DryRunCommunicatorTest, CountsTransfersForThisMemberOnly) {
  const Transfer set[] = {{Direction::send, 0, 0, f32({3})}, {Direction::receive, 2, 0, f32({4})}};
  communicator_.exchange(set, *stream_);
  const DryRunCommunicator::Posted posted = communicator_.take();
  EXPECT_THAT(bytes_out(posted), ElementsAre(0, 12, 0));
  EXPECT_EQ(posted.of_member[1].bytes_in, 16u);
  EXPECT_THAT(posted.collectives, IsEmpty());
  EXPECT_THAT(bytes_out(communicator_.take()), ElementsAre(0, 0, 0));
}

TEST_F(DryRunCommunicatorTest, ChecksCallsAsInARun) {
  EXPECT_THAT(error_of([this] { communicator_.all_gather(f32({2}), f32({5}), *stream_); }), HasSubstr("6 are needed"));
  EXPECT_THAT(error_of([this] { communicator_.broadcast(f32({2}), 3, *stream_); }), HasSubstr("root 3 is outside"));
}

} // namespace
} // namespace triax::executor
