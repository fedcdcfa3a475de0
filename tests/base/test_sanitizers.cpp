// SPDX-License-Identifier: Apache-2.0
// What the sanitizers of the preset asan report.
#include <gtest/gtest.h>

#include <vector>

namespace triax {
namespace {

#ifdef __SANITIZE_ADDRESS__

[[gnu::noinline]] int shifted_for_the_test(int value, int bits) {
  return value << bits;
}

TEST(SanitizersDeathTest, AnUndefinedShiftEndsTheProcessAndNamesItsFunction) {
  volatile int bits = 40;
  EXPECT_DEATH(shifted_for_the_test(1, bits), "AddressSanitizer: ILL(.|\n)*shifted_for_the_test");
}

TEST(SanitizersDeathTest, AnIndexPastTheEndEndsTheProcess) {
  const std::vector<int> values(3);
  volatile std::size_t index = 3;
  EXPECT_DEATH(
      {
        volatile int value = values.data()[index];
        (void)value;
      },
      "heap-buffer-overflow");
}

#endif

} // namespace
} // namespace triax
