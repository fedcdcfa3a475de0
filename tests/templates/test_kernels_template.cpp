// SPDX-License-Identifier: Apache-2.0
// The template of a kernel set. It also passes the conformance suite (conformance.kernels-template), and its run test
// compares its bits with those of kernels-reference.
#include <gtest/gtest.h>

#include "support/loaded_kernels.hpp"

namespace triax::test {
namespace {

TEST(KernelsTemplate, RefusesOtherTypesInItsOwnName) {
  LoadedKernels tested(TEMPLATES "/kernels-template");
  const Refusals refused = tested.set().supports(KernelRequest{DType::bf16, DType::f32});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_TRUE(refused.front().message.starts_with("kernels-template computes")) << refused.front().message;
}

} // namespace
} // namespace triax::test
