// SPDX-License-Identifier: Apache-2.0
// What ranks that are processes write on their stdout and stderr, as lines of this process's stderr: "rank 2: ...".
//
// Threads: one. Ownership: borrows the stream. Blocking: writes. Errors: none: a stream that
// takes nothing is left alone.
#pragma once

#include <iosfwd>
#include <string_view>

namespace triax::report {

class RankOutput {
 public:
  /// `terminal`: a bar may stand on the line; it comes back with the next step.
  RankOutput(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}
  static RankOutput for_stderr();

  /// Control characters are shown, not sent.
  void write(int rank, std::string_view line);

 private:
  std::ostream& out_;
  bool terminal_;
};

} // namespace triax::report
