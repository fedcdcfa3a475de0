// SPDX-License-Identifier: Apache-2.0
// Progress output while ranks start, byte by byte, on a terminal and elsewhere.
#include <gtest/gtest.h>

#include <sstream>

#include "report/start_progress.hpp"

namespace triax::report {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Drawing {
  explicit Drawing(bool terminal, int columns = 80) : progress(out, terminal, columns, [this] { return now; }) {}
  std::string after(int ms, const StartState& state) {
    now += milliseconds(ms);
    progress.update(state);
    std::string text = out.str();
    out.str("");
    return text;
  }
  steady_clock::time_point now{};
  std::ostringstream out;
  StartProgress progress;
};

TEST(StartProgress, WithoutATerminalTheFirstLineComesAfterTwoSeconds) {
  Drawing drawing(false);
  EXPECT_EQ(drawing.after(1999, {1, 0, 4, "1-3"}), "");
  EXPECT_EQ(drawing.after(1, {1, 0, 4, "1-3"}), "starting: 1 of 4 ranks joined, waiting for ranks 1-3 to join\n");
  EXPECT_EQ(drawing.after(9999, {3, 0, 4, "3"}), "");
  EXPECT_EQ(drawing.after(1, {4, 2, 4, "1, 3"}),
            "starting: 2 of 4 ranks ready, waiting for ranks 1, 3 to prepare the first step\n");
  EXPECT_EQ(drawing.after(20000, {4, 4, 4, "", true}), "");
}

TEST(StartProgress, OnATerminalTheLineIsRedrawnAndTakenAway) {
  const std::string clear = "\r\x1b[K";
  Drawing drawing(true, 31);
  EXPECT_EQ(drawing.after(499, {1, 0, 4, "1-3"}), "");
  EXPECT_EQ(drawing.after(1, {1, 0, 4, "1-3"}), clear + "starting: 1 of 4 ranks joined,");
  EXPECT_EQ(drawing.after(99, {2, 0, 4, "2, 3"}), "");
  EXPECT_EQ(drawing.after(1, {4, 1, 4, ""}), clear + "starting: 1 of 4 ranks ready");
  EXPECT_EQ(drawing.after(0, {4, 4, 4, "", true}), clear);
}

TEST(StartProgress, AQuickStartDrawsNothing) {
  for (const bool terminal : {false, true}) {
    Drawing drawing(terminal);
    EXPECT_EQ(drawing.after(100, {1, 0, 4, "1-3"}), "");
    EXPECT_EQ(drawing.after(100, {4, 4, 4, "", true}), "");
  }
}

} // namespace
} // namespace triax::report
