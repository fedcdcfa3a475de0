// SPDX-License-Identifier: Apache-2.0
// Which programs get transfer streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "executor/transfer_streams.hpp"
#include "schedule/rank_lowering.hpp"
#include "triax/error.hpp"

namespace triax::test {
namespace {

using schedule::Kind;
using schedule::Program;

Program one_pass(Program::Posts posts) {
  schedule::RankLowering rows(schedule::StageMap({0}), 0, true, schedule::Boundaries::whole, schedule::Sharding::none);
  rows.add(Kind::forward, 0, 0);
  return rows.finish(posts);
}

TEST(TransferStreams, TakeTransfersOneByOneAndNotInSets) {
  const std::unique_ptr<Device> device = make_host_device();
  const Groups no_groups;
  const Program ones = one_pass(Program::Posts::one_by_one), sets = one_pass(Program::Posts::sets);
  EXPECT_NO_THROW(executor::TransferStreams(*device, no_groups, std::array{&ones}, {}));
  EXPECT_THAT(
      [&] {
        executor::TransferStreams(*device, no_groups, std::array{&ones, &sets}, {});
      },
      testing::ThrowsMessage<Error>(testing::HasSubstr("posts its transfers in sets")));
}

} // namespace
} // namespace triax::test
