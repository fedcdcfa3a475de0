// SPDX-License-Identifier: Apache-2.0
// triax plugins test: runs the conformance suite of a plugin's kind.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/side_plugins.hpp"
#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/output_flag.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/setting_flag.hpp"
#include "common/verbs.hpp"
#include "os/deferred_signals.hpp"
#include "os/signal_name.hpp"
#include "plugin/loader.hpp"
#include "plugin/plugin_kinds.hpp"
#include "plugins/gpu_stand_in.hpp"
#include "plugins/locate_plugin.hpp"
#include "plugins/plugin_suites.hpp"
#include "plugins/plugins_verbs.hpp"
#include "triax/conformance/clause.hpp"
#include "triax/conformance/output.hpp"
#include "triax/conformance/run.hpp"

namespace triax::app {

namespace {

using conformance::Check;
using conformance::Outcome;
using conformance::Result;

constexpr int kDefaultRanks = 5;

struct TestArguments {
  std::vector<std::string> folders; // --path
  std::string plugin, junit;
  std::optional<std::string> kernels; // default: KindOfSuite::default_kernels
  std::vector<config::Override> settings;
  bool threads = false, processes = false, list = false, json = false;
  std::optional<int> ranks; // default: kDefaultRanks
  double timeout_s = 30;
  conformance::RunOptions run;
};

std::string kinds_text() {
  std::string out;
  for (const KindOfSuite& row : kinds_of_suites()) out += (out.empty() ? "" : ", ") + std::string(row.kind);
  return out;
}

const KindOfSuite* find_suite(const plugin::Library& library, Refusals& refusals) {
  const auto kinds = kinds_of_suites();
  const auto found = std::ranges::find_if(
      kinds, [&](const KindOfSuite& row) { return std::string_view(row.kind) == library.descriptor->kind; });
  if (found != kinds.end()) return &*found;
  refusals.add(make_refusal(ErrorCode::kUnsupported, {"plugin"}, "{} is a plugin of kind {}, which has no suite",
                            library.descriptor->name, library.descriptor->kind)
                   .with_hint("kinds with a suite: {}", kinds_text()));
  return nullptr;
}

/// Flags that the user gave, for a kind whose checks do not depend on them.
void refuse_flags(const TestArguments& arguments, const KindOfSuite& suite, Refusals& refusals) {
  using Needs = bool KindOfSuite::*;
  const struct {
    const char* flag;
    bool is_given;
    Needs needs;
  } kFlags[] = {{"--threads", arguments.threads, &KindOfSuite::has_ranks},
                {"--processes", arguments.processes, &KindOfSuite::has_ranks},
                {"--ranks", arguments.ranks.has_value(), &KindOfSuite::has_ranks},
                {"--kernels", arguments.kernels.has_value(), &KindOfSuite::uses_kernels}};
  for (const auto& row : kFlags) {
    if (!row.is_given || suite.*row.needs) continue;
    std::string kinds;
    for (const KindOfSuite& other : kinds_of_suites())
      if (other.*row.needs)
        kinds += text("{}{}", kinds.empty() ? "" : ", ", plugin::find_plugin_kind(other.kind)->plural);
    refusals.add(make_refusal(ErrorCode::kConflict, {row.flag}, "{} has no effect on {}", row.flag,
                              plugin::find_plugin_kind(suite.kind)->article_name)
                     .with_hint("leave {} out: it is for {}", row.flag, kinds));
  }
}

/// Loads the plugin, for the first time in a child process, and makes the checks of its kind.
RequestedSuite request_suite(const TestArguments& arguments, Refusals& refusals) {
  const std::string file = std::filesystem::absolute(locate_plugin(arguments.plugin, arguments.folders).file);
  bool on_stand_in = load_gpu_stand_in(file);
  if (arguments.kernels && !on_stand_in) // whose devices the ranks may have
    if (const auto kernels = plugin::try_find(*arguments.kernels, folders_to_search(arguments.folders)))
      on_stand_in = load_gpu_stand_in(kernels->file);
  const auto failures = plugin::probe_loading(std::vector<std::filesystem::path>{file});
  if (!failures.empty()) throw Error(failures.begin()->second.reason(), file, failures.begin()->second.hint(file));
  const plugin::Library& library = plugin::load(file, "");
  const KindOfSuite* const kind = find_suite(library, refusals);
  if (!kind) return {};
  refuse_flags(arguments, *kind, refusals);
  std::vector<config::Override> settings = arguments.settings;
  if (kind->settings)
    for (const config::Override& more : kind->settings(library, arguments.settings)) settings.push_back(more);
  const std::string table(plugin::find_plugin_kind(kind->kind)->table);
  bench::Side side =
      bench::load_side({"plugin", file, kind->kind, table, settings}, plugin::FirstLoad::direct, refusals);
  if (!refusals.empty()) return {};
  side.choice.folders = folders_to_search(arguments.folders);
  std::optional<bool> processes;
  if (arguments.threads || arguments.processes) processes = arguments.processes;
  RequestedSuite suite = kind->make({.choice = side.choice,
                                     .processes = processes,
                                     .ranks = arguments.ranks.value_or(kDefaultRanks),
                                     .timeout_s = arguments.timeout_s,
                                     .folders = arguments.folders,
                                     .set = side.set,
                                     .kernels = arguments.kernels.value_or(kind->default_kernels)},
                                    refusals);
  if (on_stand_in) suite.subject += ", on the GPU stand-in: no GPU on this machine";
  return suite;
}

nlohmann::ordered_json to_json(const Result& result) {
  const char* const outcome = result.outcome == Outcome::passed   ? "passed"
                              : result.outcome == Outcome::failed ? "failed"
                                                                  : "skipped";
  const conformance::Clause& clause = conformance::find_clause(result.clause);
  nlohmann::ordered_json out = {{"name", result.name}, {"outcome", outcome}, {"seconds", result.seconds}};
  out["clause"] = {{"id", clause.id}, {"sentence", clause.sentence}, {"header", clause.header}, {"line", clause.line}};
  if (!result.skip_reason.empty()) out["skip_reason"] = result.skip_reason;
  if (!result.failures.empty()) out["failures"] = result.failures;
  return out;
}

std::string line_of(const nlohmann::ordered_json& object) { // a plugin's texts may be invalid UTF-8
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int list_checks(const std::vector<Check>& checks, bool as_json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    if (!as_json) result_out() << check.name << " [" << check.clause << "]\n";
    rows.push_back({{"name", check.name}, {"clause", check.clause}});
  }
  if (as_json) result_out() << line_of({{"checks", rows}}) << '\n';
  return kDone;
}

std::vector<Result> run_suite(const TestArguments& arguments, const RequestedSuite& suite,
                              const std::vector<Check>& checks) {
  if (arguments.json) return run_checks(checks, arguments.run, {});
  conformance::TextOutput output(result_out(), suite.subject);
  output.begin(checks.size());
  std::vector<Result> results = run_checks(checks, arguments.run, output.listener());
  output.end(results);
  return results;
}

int report_results(const TestArguments& arguments, const RequestedSuite& suite, const std::vector<Result>& results) {
  if (arguments.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Result& result : results) rows.push_back(to_json(result));
    result_out() << line_of({{"subject", suite.subject}, {"checks", rows}}) << '\n';
  }
  result_out().flush();
  const bool failed = std::ranges::count(results, Outcome::failed, &Result::outcome) > 0;
  if (arguments.junit.empty()) return failed ? kFailed : kDone;
  try {
    write_output(conformance::junit_xml(suite.subject, results), arguments.junit);
  } catch (const Error& error) {
    print_problem(text("--junit: {}", error.what()));
    return kFailed;
  }
  return failed ? kFailed : kDone;
}

int test_plugin(TestArguments arguments) {
  Refusals refusals = plugin::check_environment();
  RequestedSuite suite;
  try {
    if (refusals.empty()) suite = request_suite(arguments, refusals);
  } catch (const Error& error) {
    print_problem(error.what(), arguments.json);
    return kRefused;
  }
  const std::vector<Check> checks = conformance::select(suite.checks, arguments.run.filter);
  if (refusals.empty() && checks.empty())
    refusals.add(make_refusal(ErrorCode::kInvalidValue, {"--filter"}, "--filter {} selects none of the {} checks",
                              arguments.run.filter, suite.checks.size())
                     .with_hint("--list shows their names"));
  if (!refusals.empty()) return refuse(refusals, arguments.json);
  if (arguments.list) return list_checks(checks, arguments.json);
  arguments.run.timeout_s = kCheckWaits * arguments.timeout_s;
  std::optional<os::DeferredSignals> signals;
  int caught = 0;
  if (!arguments.run.in_this_process) { // where a check cannot be stopped
    signals.emplace();
    arguments.run.is_stopped = [&] { return (caught = caught != 0 ? caught : signals->caught()) != 0; };
  }
  const std::vector<Result> results = run_suite(arguments, suite, checks);
  if (caught == 0) return report_results(arguments, suite, results);
  result_out().flush();
  print_problem(text("stopped by {} after {} of {} checks", signal_name(caught), results.size(), checks.size()),
                arguments.json);
  return 128 + caught;
}

} // namespace

void add_plugins_test(CLI::App& plugins, int& status) {
  const auto arguments = std::make_shared<TestArguments>();
  CLI::App* const verb = plugins.add_subcommand("test", "checks a plugin against the contract of its interface");
  verb->add_option("plugin", arguments->plugin, "its name, or the path of its file")->required();
  repeated(
      verb->add_option("--path", arguments->folders, "folder to search first")->check(existing_folder())->expected(1));
  CLI::Option* const threads = verb->add_flag("--threads", arguments->threads, "ranks are threads of a process");
  verb->add_flag("--processes", arguments->processes, "each rank is a process [if the plugin needs it]")
      ->excludes(threads);
  verb->add_option("--ranks", arguments->ranks, "members of the largest group [5]")
      ->type_name("N")
      ->check(integer_in(3, 8));
  verb->add_option("--filter", arguments->run.filter, "checks to run, as GoogleTest's: 'Abort.*:*Rank*-*Large*' [*]")
      ->type_name("PATTERNS")
      ->check(not_empty());
  verb->add_flag("--list", arguments->list, "lists the checks and the clauses that they test");
  add_settings(*verb, "--set", arguments->settings, "sets an option of the plugin", kAnyTable);
  verb->add_option("--kernels", arguments->kernels,
                   "for a model: kernel set for the host to run it on [kernels-reference]; for a communicator: "
                   "kernel set that creates the ranks' devices [kernels-cublas if it needs GPUs, else the host]")
      ->type_name("KERNELS")
      ->check(not_empty());
  verb->add_option("--timeout-s", arguments->timeout_s,
                   "time limit of a wait, in seconds [30]; a check may take four times as long")
      ->type_name("SECONDS")
      ->check(number_in(0.1, 3600));
  verb->add_flag("--in-this-process", arguments->run.in_this_process,
                 "runs the checks in this process, for a debugger; the first that crashes or hangs is the last");
  verb->add_option("--junit", arguments->junit, "also writes the results to this file as JUnit XML")
      ->type_name("FILE")
      ->check(CLI::Validator(output_file_error, {}));
  verb->add_flag("--json", arguments->json, "prints the results as one JSON object");
  verb->callback([arguments, &status] { status = test_plugin(*arguments); });
}

} // namespace triax::app
