// SPDX-License-Identifier: Apache-2.0
// Sizes and bandwidths of the operations of a communicator, as nccl-tests (doc/PERFORMANCE.md) has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/comm_plan.hpp"

namespace triax::bench {
namespace {

using ::testing::HasSubstr;
using Operation = CommOperation;

TEST(CommOperations, HaveNames) {
  for (const std::string& name : comm_operation_names()) {
    ASSERT_TRUE(find_comm_operation(name)) << name;
    EXPECT_EQ(name_of(*find_comm_operation(name)), name);
  }
  EXPECT_EQ(find_comm_operation("all_reduse"), std::nullopt);
}

TEST(CommOperations, HaveTheBusFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_reduce, 4), 2 * 3.0 / 4);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::reduce_scatter, 4), 3.0 / 4);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_gather, 8), 7.0 / 8);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_to_all, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::exchange, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::send, 2), 1);
}

TEST(CommOperations, HaveTheSizeOfTheirLargerBuffer) {
  EXPECT_EQ(shape_of(Operation::all_reduce, 12, 4).in, 12);
  EXPECT_EQ(shape_of(Operation::all_gather, 12, 4).in, 3);
  EXPECT_EQ(shape_of(Operation::all_gather, 12, 4).out, 12);
  EXPECT_EQ(shape_of(Operation::reduce_scatter, 12, 4).out, 3);
  EXPECT_EQ(size_unit(Operation::all_reduce, DType::f32, 3), 4);
  EXPECT_EQ(size_unit(Operation::all_gather, DType::bf16, 3), 6);
  EXPECT_EQ(collective_of(Operation::all_gather, DType::f32, 12, 4).elements, 3);
}

CommPlan plan_of(Operation operation, std::int64_t bytes, int ranks, DType dtype = DType::f32) {
  CommPlan plan;
  plan.operation = operation;
  plan.sizes = {bytes};
  plan.ranks = ranks;
  plan.dtype = dtype;
  plan.sides.resize(1);
  return plan;
}

TEST(CommPlans, RefuseSizesThatAreNotDivisible) {
  EXPECT_TRUE(check(plan_of(Operation::all_reduce, 4096, 3)).empty());
  const Refusals parts = check(plan_of(Operation::all_gather, 4096, 3));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts.front().message, "--sizes 4K: 4096 is not divisible by 12 bytes (one f32 for each of 3 ranks)");
  EXPECT_EQ(parts.front().hint, "use sizes that are multiples of 12: --sizes 4104");
  const Refusals elements = check(plan_of(Operation::all_reduce, 6, 2));
  ASSERT_EQ(elements.size(), 1u);
  EXPECT_EQ(elements.front().message, "--sizes 6: 6 is not divisible by 4 bytes (one f32)");
}

TEST(CommPlans, RefuseWhatAnOperationCannotDo) {
  EXPECT_THAT(check(plan_of(Operation::all_reduce, 8, 2, DType::u8)).front().message, HasSubstr("cannot add bytes"));
  EXPECT_TRUE(check(plan_of(Operation::all_gather, 8, 2, DType::u8)).empty());
  EXPECT_THAT(check(plan_of(Operation::send, 8, 3)).front().message,
              HasSubstr("--op send needs an even number of ranks, got 3"));
}

TEST(CommPlans, NeedMemoryForTheirBuffers) {
  CommPlan plan = plan_of(Operation::all_gather, 4096, 4);
  plan.sides.resize(2);
  EXPECT_TRUE(check_memory(plan, 4, 2 * 4 * (4096 + 1024)).empty());
  EXPECT_TRUE(check_memory(plan, 4, 0).empty()); // not known
  EXPECT_EQ(check_memory(plan, 4, 40000).front().message,
            "--sizes 4K: the buffers of 4 ranks need 41 kB, but this machine has 40 kB of free memory");
}

TEST(CommPlans, SendResultsAsALine) {
  const SizeResult result{4096, {{7, {1e-6, 0.1 + 0.2}, 1e-7, 2e-7, 3e-7}, {9, {5e-5}, 0, 0, 0}}};
  const SizeResult read = read_size_result(to_line(result));
  EXPECT_EQ(to_line(read), to_line(result));
  EXPECT_EQ(read.sides.at(0).turns_s.at(1), 0.1 + 0.2);
  EXPECT_THROW(read_size_result("[1, 2"), Error);
  EXPECT_THROW(read_size_result("[1, 2]"), Error);
}

} // namespace
} // namespace triax::bench
