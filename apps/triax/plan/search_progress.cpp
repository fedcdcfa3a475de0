// SPDX-License-Identifier: Apache-2.0
#include "plan/search_progress.hpp"

#include <iostream>

#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

SearchProgress::~SearchProgress() {
  if (is_drawn_) std::cerr << os::kClearLine << std::flush;
}

void SearchProgress::show(std::size_t timed) {
  constexpr std::chrono::milliseconds kBetween(100);
  if (!terminal_.terminal) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetween) return;
  last_ = now;
  is_drawn_ = true;
  std::cerr << os::kClearLine
            << text("searching: {} timed; Ctrl-C prints the best so far",
                    report::counted_text(static_cast<std::int64_t>(timed), "plan"))
            << std::flush;
}

} // namespace triax::app
