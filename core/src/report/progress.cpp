// SPDX-License-Identifier: Apache-2.0
#include "report/progress.hpp"

#include <algorithm>
#include <ostream>
#include <vector>

#include "os/stderr_output.hpp"
#include "os/terminal.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::report {

namespace {

using std::chrono::steady_clock;

constexpr auto kLineEvery = std::chrono::seconds(10);
constexpr auto kBarEvery = std::chrono::milliseconds(100); // so that a terminal does not slow down fast steps
constexpr int kBarCells = 24;
constexpr int kMinCells = 6;

std::string bar_of(double share, int cells, bool colour) {
  const int done = std::clamp(static_cast<int>(share * cells), 0, cells);
  std::string filled(static_cast<std::size_t>(done), '=');
  if (done > 0 && done < cells) filled.back() = '>';
  return "[" + os::Paint{colour}(os::kGreen, filled) + std::string(static_cast<std::size_t>(cells - done), ' ') + "]";
}

} // namespace

Progress::Progress(std::ostream& out, bool terminal, bool colour, int columns, std::int64_t steps, ProgressClock clock)
    : out_(&out), terminal_(terminal), colour_(colour), columns_(columns), steps_(steps), clock_(std::move(clock)) {}

Progress Progress::for_stderr(std::int64_t steps) {
  const os::Terminal found = os::stderr_terminal();
  return {os::new_stderr_stream(), found.terminal, found.colour, found.columns, steps};
}

void Progress::update(const StepRecord& record) {
  // Average over about ten steps: the remaining time is stable and does not depend on slow first steps for long.
  smoothed_ms_ = last_ ? smoothed_ms_ + (record.step_ms - smoothed_ms_) / 10 : record.step_ms;
  const std::int64_t skipped = (last_ ? last_->skipped : 0) + (record.skipped ? 1 : 0);
  last_ =
      Shown{record.step, record.loss, record.tokens_per_s, record.eval_loss ? record.eval_loss : last_eval(), skipped};
  shown_ = false;
  const steady_clock::time_point now = clock_();
  if (last_written_ && now - *last_written_ < (terminal_ ? steady_clock::duration(kBarEvery) : kLineEvery)) return;
  last_written_ = now;
  write();
}

void Progress::finish() {
  if (!last_) return;
  if (terminal_) {
    *out_ << os::kClearLine << line(false) << '\n' << std::flush;
  } else if (!shown_) {
    write();
  }
  last_.reset();
}

void Progress::clear() {
  if (last_ && terminal_) *out_ << os::kClearLine << std::flush;
  last_.reset();
}

void Progress::write() {
  if (terminal_) {
    *out_ << os::kClearLine << line(true) << std::flush;
  } else {
    *out_ << line(false) << '\n' << std::flush;
  }
  shown_ = true;
}

std::optional<double> Progress::last_eval() const {
  return last_ ? last_->eval_loss : std::nullopt;
}

std::string Progress::line(bool bar) const {
  const double share = steps_ > 0 ? static_cast<double>(last_->step) / static_cast<double>(steps_) : 0;
  const std::int64_t left = std::max<std::int64_t>(0, steps_ - last_->step);
  std::vector<std::string> parts = {text("step {}/{}", last_->step, steps_), "loss " + decimals_text(last_->loss, 4)};
  if (last_->eval_loss) parts.push_back("eval " + decimals_text(*last_->eval_loss, 4));
  if (last_->skipped > 0) parts.push_back(text("{} skipped", last_->skipped));
  parts.push_back(count_text(last_->tokens_per_s) + " tokens/s");
  if (left > 0) parts.push_back(duration_text(smoothed_ms_ / 1000 * static_cast<double>(left)) + " left");

  if (!bar) return joined(parts, parts.size());
  // The last column stays free: terminals wrap there, and a wrapped bar cannot be cleared. If space is short, the bar
  // is left out first, then parts from the end.
  const int width = std::max(0, columns_ - 1);
  std::size_t count = parts.size();
  while (count > 1 && static_cast<int>(joined(parts, count).size()) > width) --count;
  std::string shown = joined(parts, count).substr(0, static_cast<std::size_t>(width));
  const int cells = std::min(kBarCells, width - static_cast<int>(shown.size()) - 4);
  if (count < parts.size() || cells < kMinCells) return shown;
  return bar_of(share, cells, colour_) + "  " + shown;
}

std::string Progress::joined(const std::vector<std::string>& parts, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += (i ? "  " : "") + parts[i];
  return out;
}

} // namespace triax::report
