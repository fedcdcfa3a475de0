// SPDX-License-Identifier: Apache-2.0
#include "report/start_progress.hpp"

#include <algorithm>
#include <ostream>

#include "os/stderr_output.hpp"
#include "os/terminal.hpp"
#include "triax/text.hpp"

namespace triax::report {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstLine{2000}, kStartLineEvery{10000};
constexpr milliseconds kFirstDrawing{500}, kDrawEvery{100}; // on a terminal

} // namespace

StartProgress::StartProgress(std::ostream& out, bool terminal, int columns, ProgressClock clock)
    : out_(&out), terminal_(terminal), columns_(columns), clock_(std::move(clock)), began_(clock_()) {}

StartProgress StartProgress::for_stderr() {
  const os::Terminal found = os::stderr_terminal();
  return {os::new_stderr_stream(), found.terminal, found.columns};
}

void StartProgress::update(const StartState& state) {
  if (state.over) {
    if (terminal_ && last_written_) *out_ << os::kClearLine << std::flush;
    last_written_.reset();
    return;
  }
  const steady_clock::time_point now = clock_();
  const milliseconds every = terminal_ ? kDrawEvery : kStartLineEvery, first = terminal_ ? kFirstDrawing : kFirstLine;
  if (last_written_ ? now - *last_written_ < every : now - began_ < first) return;
  last_written_ = now;
  const std::string line = to_text(state);
  if (terminal_) { // the last column stays free: terminals wrap there
    *out_ << os::kClearLine << line.substr(0, static_cast<std::size_t>(std::max(0, columns_ - 1))) << std::flush;
  } else {
    *out_ << line << '\n' << std::flush;
  }
}

std::string to_text(const StartState& state) {
  const bool all_joined = state.joined >= state.world;
  std::string out = text("starting: {} of {} ranks {}", all_joined ? state.ready : state.joined, state.world,
                         all_joined ? "ready" : "joined");
  if (state.missing.empty()) return out;
  const bool is_one = state.missing.find_first_not_of("0123456789") == std::string::npos;
  return text("{}, waiting for rank{} {} to {}", out, is_one ? "" : "s", state.missing,
              all_joined ? "prepare the first step" : "join");
}

} // namespace triax::report
