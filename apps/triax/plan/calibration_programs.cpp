// SPDX-License-Identifier: Apache-2.0
#include "plan/calibration_programs.hpp"

#include <chrono>
#include <iostream>
#include <thread>

#include "os/child_process.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

constexpr std::size_t kShownLines = 6;

void keep_last(std::vector<std::string>& kept, std::vector<std::string> lines) {
  for (std::string& line : lines) kept.push_back(std::move(line));
  if (kept.size() > kShownLines) kept.erase(kept.begin(), kept.end() - kShownLines);
}

} // namespace

CalibrationPrograms::~CalibrationPrograms() {
  if (terminal_.terminal) std::cerr << os::kClearLine << std::flush;
}

void CalibrationPrograms::show(const std::string& what) {
  ++number_;
  if (!terminal_.terminal) return;
  std::cerr << os::kClearLine << text("measuring {} of {}: {}; Ctrl-C stops, and writes no file", number_, total_, what)
            << std::flush;
}

void CalibrationPrograms::run(const std::string& what, const std::vector<std::string>& arguments) {
  constexpr std::chrono::milliseconds kPoll(10);
  show(what);
  os::Child child(arguments, {});
  std::vector<std::string> last;
  while (!child.ended()) {
    keep_last(last, child.lines());
    throw_if_stopped(); // kills the child
    std::this_thread::sleep_for(kPoll);
  }
  throw_if_stopped(); // Ctrl-C of a terminal ends the child too
  keep_last(last, child.lines());
  if (child.status() == 0) return;
  std::string shown;
  for (const std::string& line : last) shown += "\n  " + line;
  throw Error(text("the measurement of {} {}{}", what, os::how_it_ended(child.status()), shown), {},
              "correct the cause that its output above names");
}

void CalibrationPrograms::throw_if_stopped() const {
  if (const int signal = signals_.caught(); signal != 0) throw Interrupted{signal};
}

} // namespace triax::app
