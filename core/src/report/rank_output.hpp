// SPDX-License-Identifier: Apache-2.0
// Prints the stdout and stderr of rank processes on this process's stderr, as "rank 2: ...".
//
// Ownership: borrows the stream. Blocking: writes. Errors: none; a stream that fails is not used further.
#pragma once

#include <iosfwd>
#include <string_view>

namespace triax::report {

class RankOutput {
 public:
  /// `terminal`: the line may show a progress bar, which reappears with the next step.
  RankOutput(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}
  static RankOutput for_stderr();

  /// Escapes control characters.
  void write(int rank, std::string_view line);

 private:
  std::ostream& out_;
  bool terminal_;
};

} // namespace triax::report
