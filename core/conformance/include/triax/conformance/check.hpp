// SPDX-License-Identifier: Apache-2.0
// Checks and suites. A suite of a kind of plugin is a table:
//
//   constexpr CheckOf<SchedulerSubject> kChecks[] = {
//     {"Rows.AreEqualInEveryCallAndObject", "S2", nullptr, rows_are_equal},
//     {"Options.AtTheirLimitsRefuseOrGiveRows", "S7", unless_variants, options_at_their_limits},
//   };
//   std::vector<Check> scheduler_checks(const SchedulerSubject& subject) { return bind_checks(kChecks, subject); }
//
// A subject is what the checks of a kind need: how to create the plugin's object, its options, its traits.
//
// Threads: values. Ownership: bind_checks() copies the subject into each check. Blocking: run(), as long as the check
// takes. Errors: run() may throw anything, which is a failure of the check.
#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "triax/conformance/report.hpp"

namespace triax::conformance {

/// A check of one plugin.
struct Check {
  std::string name;                         // "AllReduce.AddsInRankOrder"
  std::string clause;                       // the clause that it tests: "C12"
  std::function<std::string()> skip_reason; // empty text: it applies to the plugin and can run here
  std::function<void(Report&)> run;
};

/// A row of a suite: a check of any subject of its kind.
template <class Subject>
struct CheckOf {
  const char* name;
  const char* clause;
  std::string (*skip_reason)(const Subject&); // null: it applies to every plugin of the kind
  void (*run)(const Subject&, Report&);
};

/// The checks of a table, for one subject.
template <class Table, class Subject>
std::vector<Check> bind_checks(const Table& table, const Subject& subject) {
  const auto shared = std::make_shared<const Subject>(subject);
  std::vector<Check> out;
  out.reserve(std::size(table));
  for (const CheckOf<Subject>& row : table)
    out.push_back({row.name, row.clause,
                   [shared, skip = row.skip_reason] { return skip ? skip(*shared) : std::string(); },
                   [shared, run = row.run](Report& report) { run(*shared, report); }});
  return out;
}

} // namespace triax::conformance
