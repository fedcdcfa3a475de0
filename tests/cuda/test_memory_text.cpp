// SPDX-License-Identifier: Apache-2.0
// Sizes of memory in messages are those of the engine.
#include <gtest/gtest.h>

#include "memory_text.hpp"
#include "report/units.hpp"

namespace triax::cuda {
namespace {

TEST(MemoryText, HasAFittingUnit) {
  EXPECT_EQ(memory_text(0), "0 B");
  EXPECT_EQ(memory_text(1048576), "1.05 MB");
  EXPECT_EQ(memory_text(3e7), "30 MB");
  EXPECT_EQ(memory_text(8.589934592e9), "8.59 GB");
  EXPECT_EQ(memory_text(1e15), "1 PB");
}

TEST(MemoryText, IsThatOfTheEngine) {
  for (double bytes = 1; bytes < 1.8e19; bytes *= 1.07) {
    const auto whole = static_cast<std::uint64_t>(bytes);
    EXPECT_EQ(memory_text(static_cast<double>(whole)), report::bytes_text(whole));
  }
}

} // namespace
} // namespace triax::cuda
