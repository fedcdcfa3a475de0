// SPDX-License-Identifier: Apache-2.0
#include "plugins/scheduler_suite.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "plugin/option_text.hpp"
#include "plugins/suite_object.hpp"
#include "schedule/lower.hpp"
#include "schedule/verify.hpp"
#include "triax/abi.h"
#include "triax/conformance/scheduler_checks.hpp"

namespace triax::app {

namespace {

using conformance::SchedulerSubject;
using conformance::ScheduleViolation;
using schedule::Violation;
using Rule = Violation::Rule;

/// The clause that rows with this violation break.
const char* clause_of(Rule rule) {
  switch (rule) {
    case Rule::rows_per_rank:
    case Rule::one_pipeline:
    case Rule::all_stages:
    case Rule::stage_on_a_rank:
    case Rule::rank_with_a_stage:
      return "S3";
    case Rule::known_kind:
    case Rule::known_stage:
    case Rule::known_microbatch:
    case Rule::names_microbatch:
    case Rule::whole_sequence:
    case Rule::on_its_rank:
    case Rule::once:
    case Rule::present:
      return "S4";
    case Rule::before:
    case Rule::ascending:
      return "S5";
    default:
      return "S6"; // ranks that do not reach their end
  }
}

void add_violations(std::vector<ScheduleViolation>& out, const std::vector<Violation>& violations,
                    const char* clause = nullptr) {
  for (const Violation& violation : violations)
    out.push_back({clause ? clause : clause_of(violation.rule), violation.reason()});
}

/// Verifies the rows, then their programs with the weakest guarantees, with whole and scattered boundaries.
std::vector<ScheduleViolation> verify_schedule(const Schedule& rows, const PipelineShape& shape) {
  std::vector<ScheduleViolation> out;
  add_violations(out, schedule::verify(rows, shape));
  if (!out.empty()) return out;
  const schedule::Assumptions weakest = everywhere(schedule::kMinGuarantee);
  for (const auto boundaries : {schedule::Boundaries::whole, schedule::Boundaries::scattered}) {
    add_violations(out, schedule::verify(lower(rows, shape, boundaries), {.shape = shape}, weakest), "S6");
    add_violations(
        out,
        schedule::verify(lower_forward_only(rows, shape, boundaries), {.shape = shape, .forward_only = true}, weakest),
        "S6");
  }
  return out;
}

constexpr double kOpenLimit = 9.2e18; // near 2^63: an INT option has no value there

/// Values at the limits of an option, except open ones, and small ones, or its choices, as the text that sets them.
std::vector<std::string> tried_texts(const triax_option& option) {
  std::vector<std::string> out;
  if (option.type == TRIAX_OPTION_BOOL) return {"false", "true"};
  if (option.type == TRIAX_OPTION_INT && option.min <= option.max) {
    std::set<std::int64_t> values;
    for (const double limit : {option.min, option.max})
      if (std::abs(limit) < kOpenLimit) values.insert(static_cast<std::int64_t>(limit));
    for (const std::int64_t value : {1, 2, 3, 5, 8})
      if (option.min <= static_cast<double>(value) && static_cast<double>(value) <= option.max) values.insert(value);
    for (const std::int64_t value : values) out.push_back(text("{}", value));
    return out;
  }
  if (option.type == TRIAX_OPTION_FLOAT && option.min <= option.max) {
    for (const double limit : {option.min, option.max})
      if (std::isfinite(limit)) out.push_back(text("{}", limit));
    return out;
  }
  if (option.type != TRIAX_OPTION_STRING || !option.choices) return {};
  const std::string_view choices = option.choices;
  for (std::size_t begin = 0; begin <= choices.size();) {
    const std::size_t end = std::min(choices.find('|', begin), choices.size());
    out.emplace_back(choices.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

conformance::Object<Scheduler> create(const plugin::Library& library, const Options& options, int rank) {
  static const Layout layout = Layout::ptd(conformance::kSubjectRanks, 1, 1);
  return create_for_suite<Scheduler>(library, PluginContext{options, null_log(), layout, rank, 1});
}

std::vector<SchedulerSubject::Variant> variants_of(const config::PluginChoice& choice) {
  std::vector<SchedulerSubject::Variant> out;
  for (const triax_option& option : choice.library->options)
    for (const std::string& value : tried_texts(option)) {
      const OptionValue parsed = plugin::parse_option(option, value);
      if (!plugin::check_option(option, parsed).empty()) continue; // such as 0 for a limit of 0.5
      const auto options = std::make_shared<Options>(choice.options);
      options->set(option.name, parsed);
      out.push_back({text("{} = {}", option.name, value),
                     [library = choice.library, options](int rank) { return create(*library, *options, rank); }});
    }
  return out;
}

} // namespace

RequestedSuite scheduler_suite(const SuiteRequest& request, Refusals&) {
  SchedulerSubject subject;
  subject.name = request.choice.name;
  subject.scheduler = [library = request.choice.library, options = request.choice.options](int rank) {
    return create(*library, options, rank);
  };
  subject.variants = variants_of(request.choice);
  subject.verify = verify_schedule;
  return {subject.name, conformance::scheduler_checks(subject)};
}

} // namespace triax::app
