// SPDX-License-Identifier: Apache-2.0
// Progress output byte by byte, on a terminal and elsewhere; detection of terminals.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "os/terminal.hpp"
#include "report/progress.hpp"

namespace triax::report {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

const std::string kClear = "\r\x1b[K";

/// A progress display that writes to a string, with a clock that the test sets.
struct Stage {
  explicit Stage(bool terminal, int columns = 80, bool colour = false, std::int64_t steps = 1000)
      : progress(out, terminal, colour, columns, steps, [this] { return now; }) {}

  void step(std::int64_t step, double loss = 4.5, double ms = 250) {
    StepRecord record;
    record.step = step;
    record.loss = loss;
    record.tokens_per_s = 12345;
    record.step_ms = ms;
    progress.update(record);
  }
  std::string written() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  steady_clock::time_point now{};
  std::ostringstream out;
  Progress progress;
};

TEST(Progress, WithoutATerminalWritesALineEveryTenSeconds) {
  Stage stage(false);
  stage.step(1);
  EXPECT_EQ(stage.written(), "step 1/1000  loss 4.5000  12.3 k tokens/s  4 min 10 s left\n");
  stage.now += milliseconds(9999);
  stage.step(2);
  EXPECT_EQ(stage.written(), "");
  stage.now += milliseconds(1);
  stage.step(3, 4.25);
  EXPECT_EQ(stage.written(), "step 3/1000  loss 4.2500  12.3 k tokens/s  4 min 09 s left\n");
}

/// The processor gives most results that are not a number a sign.
TEST(Progress, ALossThatIsNotANumberHasNoSign) {
  Stage stage(false);
  stage.step(1, -std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(stage.written(), "step 1/1000  loss nan  12.3 k tokens/s  4 min 10 s left\n");
}

TEST(Progress, ARunThatFailedLeavesNoBarBehind) {
  for (const bool terminal : {true, false}) {
    Stage stage(terminal);
    stage.progress.clear();
    EXPECT_EQ(stage.written(), "");
    stage.step(1);
    stage.written();
    stage.progress.clear();
    stage.progress.finish();
    EXPECT_EQ(stage.written(), terminal ? kClear : "");
  }
}

TEST(Progress, WithoutATerminalFinishesWithTheLastStep) {
  Stage stage(false);
  stage.step(1);
  stage.step(1000);
  stage.written();
  stage.progress.finish();
  EXPECT_EQ(stage.written(), "step 1000/1000  loss 4.5000  12.3 k tokens/s\n");
  stage.progress.finish();
  EXPECT_EQ(stage.written(), "");
}

TEST(Progress, WithoutATerminalWritesNoStepTwice) {
  Stage stage(false);
  stage.step(1);
  stage.written();
  stage.progress.finish();
  EXPECT_EQ(stage.written(), "");
}

TEST(Progress, OnATerminalRedrawsABar) {
  Stage stage(true, 100);
  stage.step(500);
  EXPECT_EQ(stage.written(),
            kClear + "[===========>            ]  step 500/1000  loss 4.5000  12.3 k tokens/s  2 min 05 s left");
  stage.now += milliseconds(100);
  stage.step(1000);
  EXPECT_EQ(stage.written(), kClear + "[========================]  step 1000/1000  loss 4.5000  12.3 k tokens/s");
  stage.progress.finish();
  EXPECT_EQ(stage.written(), kClear + "step 1000/1000  loss 4.5000  12.3 k tokens/s\n");
}

TEST(Progress, OnATerminalDrawsTenTimesASecondAtMost) {
  Stage stage(true);
  stage.step(1);
  stage.written();
  stage.now += milliseconds(99);
  stage.step(2);
  EXPECT_EQ(stage.written(), "");
  stage.now += milliseconds(1);
  stage.step(3);
  EXPECT_NE(stage.written(), "");
  stage.step(4);
  stage.progress.finish(); // draws what was not drawn yet
  EXPECT_EQ(stage.written().substr(0, kClear.size() + 11), kClear + "step 4/1000");
}

TEST(Progress, ColoursTheBarAlone) {
  Stage stage(true, 100, true);
  stage.step(500);
  EXPECT_EQ(stage.written(), kClear +
                                 "[\x1b[32m===========>\x1b[0m            ]  step 500/1000  loss 4.5000  "
                                 "12.3 k tokens/s  2 min 05 s left");
}

TEST(Progress, FitsNarrowTerminals) {
  const struct {
    int columns;
    const char* shown;
  } cases[] = {
      {80, "[======>        ]  step 500/1000  loss 4.5000  12.3 k tokens/s  2 min 05 s left"},
      {70, "step 500/1000  loss 4.5000  12.3 k tokens/s  2 min 05 s left"},
      {62, "step 500/1000  loss 4.5000  12.3 k tokens/s  2 min 05 s left"},
      {61, "step 500/1000  loss 4.5000  12.3 k tokens/s  2 min 05 s left"},
      {60, "step 500/1000  loss 4.5000  12.3 k tokens/s"},
      {30, "step 500/1000  loss 4.5000"},
      {20, "step 500/1000"},
      {10, "step 500/"},
      {1, ""},
  };
  for (const auto& c : cases) {
    Stage stage(true, c.columns);
    stage.step(500);
    const std::string shown = stage.written();
    EXPECT_EQ(shown, kClear + c.shown) << c.columns;
    EXPECT_LT(static_cast<int>(shown.size() - kClear.size()), c.columns);
  }
}

TEST(Progress, KeepsTheLastEvaluation) {
  Stage stage(false);
  StepRecord record;
  record.step = 1;
  record.eval_loss = 5.125;
  stage.progress.update(record);
  stage.now += seconds(10);
  stage.written();
  stage.step(2);
  EXPECT_EQ(stage.written(), "step 2/1000  loss 4.5000  eval 5.1250  12.3 k tokens/s  25 s left\n");
}

TEST(Progress, CountsSkippedSteps) {
  Stage stage(false);
  for (const bool skipped : {true, false, true, false}) {
    StepRecord record;
    record.skipped = skipped;
    stage.progress.update(record);
  }
  stage.now += seconds(10);
  stage.written();
  stage.step(5);
  EXPECT_EQ(stage.written().substr(0, 38), "step 5/1000  loss 4.5000  2 skipped  1");
}

TEST(Progress, OneSlowStepDoesNotMakeTheTimeLeftJump) {
  Stage stage(false);
  stage.step(1, 4.5, 100);
  stage.now += seconds(10);
  stage.written();
  stage.step(2, 4.5, 1100); // weight of one tenth
  EXPECT_EQ(stage.written(), "step 2/1000  loss 4.5000  12.3 k tokens/s  3 min 20 s left\n");
}

TEST(Progress, NothingToShowIsNothingWritten) {
  Stage stage(true);
  stage.progress.finish();
  EXPECT_EQ(stage.written(), "");
}

TEST(Terminal, LinesHaveNoOtherControlCharacters) {
  EXPECT_EQ(os::printable_lines("a\n\n\tb\x1B[31mc\xFF"), "a\n\n\tb\\u001B[31mc\\xFF");
  EXPECT_EQ(os::printable_lines("\n"), "\n");
}

TEST(Terminal, IsDecidedByTheSystemTermAndNoColor) {
  const os::Terminal full = os::decide_terminal(true, "xterm", nullptr, 120);
  EXPECT_TRUE(full.terminal && full.colour);
  EXPECT_EQ(full.columns, 120);
  EXPECT_TRUE(os::decide_terminal(true, "xterm", "", 0).colour); // NO_COLOR has no effect if empty
  EXPECT_EQ(os::decide_terminal(true, "xterm", "", 0).columns, 80);
  const os::Terminal plain = os::decide_terminal(true, "xterm", "1", 80);
  EXPECT_TRUE(plain.terminal && !plain.colour);
  EXPECT_FALSE(os::decide_terminal(true, "dumb", nullptr, 80).terminal);
  EXPECT_FALSE(os::decide_terminal(true, nullptr, nullptr, 80).terminal);
  const os::Terminal none = os::decide_terminal(false, "xterm", nullptr, 0);
  EXPECT_FALSE(none.terminal || none.colour);
}

} // namespace
} // namespace triax::report
