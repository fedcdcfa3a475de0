// SPDX-License-Identifier: Apache-2.0
#include "report/rank_output.hpp"

#include <ostream>

#include "base/printable.hpp"
#include "os/stderr_output.hpp"
#include "os/terminal.hpp"
#include "triax/text.hpp"

namespace triax::report {

RankOutput RankOutput::for_stderr() {
  return {os::new_stderr_stream(), os::stderr_terminal().terminal};
}

void RankOutput::write(int rank, std::string_view line) {
  out_ << text("{}rank {}: {}\n", terminal_ ? os::kClearLine : "", rank, printable(line)) << std::flush;
}

} // namespace triax::report
