// SPDX-License-Identifier: Apache-2.0
// Runs checks. Each runs in a separate process, so one that crashes, exits or hangs is reported, and the next one
// runs. In a debugger, or under a leak checker, checks can run in this process instead.
//
// Threads: one, of a process that has no others. Ownership: borrows. Blocking: until all checks have ended or exceeded
// their time. Errors: Error if the system cannot create a process; what a check does is in its result.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/conformance/check.hpp"

namespace triax::conformance {

/// How a check ended.
enum class Outcome { passed, failed, skipped };

/// The result of a check.
struct Result {
  std::string name, clause;
  Outcome outcome = Outcome::passed;
  std::vector<std::string> failures; // texts with the values
  std::string skip_reason;
  double seconds = 0;
};

/// Which checks run, and how.
struct RunOptions {
  std::string filter = "*"; // as of GoogleTest: "AllReduce.*:Abort.*-*.Large"
  bool in_this_process = false;
  double timeout_s = 120; // of one check; not in this process
  /// Polled while a check runs in a separate process: true ends the check, which has no result then, and the run. May
  /// be empty.
  std::function<bool()> is_stopped = {};
};

/// Called during the run; each may be empty.
struct Listener {
  std::function<void(const Check&)> began;
  std::function<void(const Result&)> ended;
};

/// Whether a name matches a filter: patterns with * and ?, separated by colons; after a minus, patterns to leave out.
bool matches(std::string_view filter, std::string_view name);
/// The checks whose names match.
std::vector<Check> select(const std::vector<Check>& checks, std::string_view filter);

/// Runs a check, in a separate process unless `options` say otherwise.
Result run_check(const Check& check, const RunOptions& options = {});
/// Runs the selected checks one after another.
std::vector<Result> run_checks(const std::vector<Check>& checks, const RunOptions& options, const Listener& listener);

} // namespace triax::conformance
