// SPDX-License-Identifier: Apache-2.0
// Any exception of a plugin function becomes an Error that names the plugin and the function.
#include <gtest/gtest.h>

#include <stdexcept>

#include "plugin/call_guard.hpp"

namespace triax::plugin {
namespace {

template <class Thrown>
std::string message_of(const Thrown& thrown) {
  try {
    guarded_call("sched-mine", "rows", [&]() -> int { throw thrown; });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Asking, NamesTheCallThatThrewAndItsError) {
  EXPECT_EQ(guarded_call("sched-mine", "rows", [] { return 3; }), 3);
  EXPECT_EQ(message_of(Error("no rows", "stage 2", "use fewer")), "sched-mine, rows(), stage 2: no rows\n  use fewer");
  EXPECT_EQ(message_of(std::runtime_error("boom")), "sched-mine, rows(): an exception: boom");
  EXPECT_EQ(message_of(7), "sched-mine, rows(): an unknown exception (not derived from std::exception)");
}

} // namespace
} // namespace triax::plugin
