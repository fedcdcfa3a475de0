// SPDX-License-Identifier: Apache-2.0
// Results of checks as text, in the format of GoogleTest, and as JUnit XML. A failure shows the values, then the clause
// of the contract with the header and the line where it stands.
//
// Threads: one. Ownership: borrows the stream. Blocking: writes. Errors: none; the stream's state has failed writes.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "triax/conformance/run.hpp"

namespace triax::conformance {

/// "[C12] On every member ... (triax/communicator.hpp:41)"
std::string clause_text(const std::string& id);

/// Writes the progress and the results of a run as text.
class TextOutput {
 public:
  /// `subject`: what is tested, such as "comm-mine, ranks as threads".
  TextOutput(std::ostream& out, std::string subject) : out_(out), subject_(std::move(subject)) {}

  /// Writes the first lines, before the first check.
  void begin(std::size_t checks);
  /// For run_checks(). The output must outlive it.
  Listener listener();
  /// Writes the summary.
  void end(const std::vector<Result>& results);

 private:
  void ended(const Result& result);

  std::ostream& out_;
  const std::string subject_;
};

/// JUnit XML, as CI systems read it: one testsuite, one testcase for each check.
std::string junit_xml(const std::string& suite, const std::vector<Result>& results);

} // namespace triax::conformance
