// SPDX-License-Identifier: Apache-2.0
#include "triax/conformance/run.hpp"

#include <fnmatch.h>
#include <malloc.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/caught_error.hpp"
#include "check_process.hpp"
#include "os/forked_process.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::conformance {

namespace {

constexpr int kCheckPollMs = 5;
constexpr int kFilling = 0xa5; // byte with which allocated memory is filled; freed memory gets its complement

bool matches_any(std::string_view patterns, const std::string& name) {
  for (std::size_t begin = 0; begin <= patterns.size();) {
    const std::size_t end = std::min(patterns.find(':', begin), patterns.size());
    if (fnmatch(std::string(patterns.substr(begin, end - begin)).c_str(), name.c_str(), 0) == 0) return true;
    begin = end + 1;
  }
  return false;
}

void run_body(const Check& check, Report& report) {
  try {
    check.run(report);
  } catch (...) {
    report.fail(caught_error().what());
  }
}

/// The text of a crash or a hang, followed by the activities of ranks and the printed output.
std::string with_details(std::string what, const Activities& activities, const std::string& printed) {
  if (const std::string calls = calls_text(activities); !calls.empty()) what += "; " + calls;
  if (!printed.empty()) what += "; it printed: " + printed;
  return what;
}

bool is_stopped(const RunOptions& options) {
  return options.is_stopped && options.is_stopped();
}

std::vector<std::string> run_isolated(const Check& check, const RunOptions& options) {
  const std::shared_ptr<Activities> activities = make_shared_activities();
  os::ForkedProcess process(
      [&](int) {
        mallopt(M_PERTURB, kFilling); // makes the use of freed or unwritten memory visible
        const RankActivity::Binding bound(activities->of_check);
        Report report(*activities);
        run_body(check, report);
        return to_answer(report.failures());
      },
      os::ForkedProcess::Output::captured);
  bool has_timed_out = false;
  std::string calls_at_timeout;
  for (WaitDeadline until(deadline_in(options.timeout_s)); !process.ended();) {
    pollfd waiting{process.descriptor(), POLLIN, 0};
    poll(&waiting, 1, kCheckPollMs);
    if (is_stopped(options)) process.kill(SIGKILL);
    if (has_timed_out || !until.passed()) continue;
    has_timed_out = true;
    calls_at_timeout = with_details(text("the check did not return within {} s", options.timeout_s), *activities, {});
    process.kill(SIGKILL);
  }
  if (has_timed_out) return {calls_at_timeout};
  if (process.has_answered()) {
    std::vector<std::string> failures = from_answer(process.answer());
    if (!failures.empty() && !process.last_line().empty())
      failures.push_back(text("it printed: {}", process.last_line()));
    return failures;
  }
  return {with_details(text("the check {}", process.how_it_ended()), *activities, process.last_line())};
}

std::vector<std::string> run_here(const Check& check) {
  const std::shared_ptr<Activities> activities = make_shared_activities();
  Report report(*activities);
  run_body(check, report);
  return report.failures();
}

} // namespace

bool matches(std::string_view filter, std::string_view name) {
  const std::size_t minus = filter.find('-');
  const std::string_view wanted = filter.substr(0, minus);
  const std::string full_name(name);
  if (!wanted.empty() && !matches_any(wanted, full_name)) return false;
  return minus == std::string_view::npos || !matches_any(filter.substr(minus + 1), full_name);
}

std::vector<Check> select(const std::vector<Check>& checks, std::string_view filter) {
  std::vector<Check> out;
  std::ranges::copy_if(checks, std::back_inserter(out),
                       [filter](const Check& check) { return matches(filter, check.name); });
  return out;
}

Result run_check(const Check& check, const RunOptions& options) {
  Result result{check.name, check.clause, Outcome::passed, {}, {}, 0};
  result.skip_reason = check.skip_reason();
  if (!result.skip_reason.empty()) {
    result.outcome = Outcome::skipped;
    return result;
  }
  const Clock::time_point begin = Clock::now();
  result.failures = options.in_this_process ? run_here(check) : run_isolated(check, options);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!result.failures.empty()) result.outcome = Outcome::failed;
  return result;
}

std::vector<Result> run_checks(const std::vector<Check>& checks, const RunOptions& options, const Listener& listener) {
  std::vector<Result> out;
  for (const Check& check : select(checks, options.filter)) {
    if (listener.began) listener.began(check);
    Result result = run_check(check, options);
    if (is_stopped(options)) break;
    out.push_back(std::move(result));
    if (listener.ended) listener.ended(out.back());
  }
  return out;
}

} // namespace triax::conformance
