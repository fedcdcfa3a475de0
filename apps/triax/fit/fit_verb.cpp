// SPDX-License-Identifier: Apache-2.0
// triax fit: the settings under which a run fits into the memory of its devices.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/refuse.hpp"
#include "common/resolved_split.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "fit/fit_result.hpp"
#include "report/run_log.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

struct FitArguments {
  std::string file;
  std::vector<config::Override> overrides;
  std::string memory; // as written
  bool json = false;
};

Refusal nothing_fits(const FitResult& result) {
  const train::MemoryPlan& least = *std::ranges::min_element(result.search.plans, {}, &train::MemoryPlan::bytes);
  return make_refusal(ErrorCode::kOutOfMemory, {"--memory"},
                      "--memory {} ({}): no setting fits: rank {} needs {} with {}", result.limit.written,
                      report::bytes_text(result.limit.bytes), least.rank, report::bytes_text(least.bytes),
                      to_text(least.settings))
      .with_hint(
          "use a larger parallel.tensor or parallel.pipeline: they divide weights, gradients and optimizer state");
}

FitResult fit(const FitArguments& arguments) {
  FitResult out{arguments.file, parse_memory_limit(arguments.memory), {}};
  const config::LoadResult loaded =
      with_split(config::load(arguments.file, arguments.overrides, {}, config::Purpose::plan));
  out.refusals = loaded.refusals;
  if (!loaded.run) return out;
  if (loaded.run->parallel.is_split_automatic) out.split = loaded.run->values.at("parallel.split");
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, 0);
  out.search = train::search_memory(*loaded.run, out.limit.bytes, *log);
  for (const Refusal& refusal : out.search.refusals) out.refusals.push_back(config::diagnose(refusal, loaded.values));
  for (const Refusal& refusal : out.search.left_out) out.left_out.push_back(config::diagnose(refusal, loaded.values));
  return out;
}

int print(FitResult& result, bool json) {
  int status = result.refusals.empty() ? kDone : kRefused;
  if (status == kDone && !result.search.best) {
    result.refusals = diagnostics_of(nothing_fits(result));
    status = kFailed;
  }
  print_errors(result.refusals);
  if (json) {
    result_out() << to_json(result) << '\n';
  } else if (status == kDone) {
    result_out() << to_text(result);
  }
  return status;
}

} // namespace

void add_fit(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("fit", "finds the settings under which a run fits into memory");
  const auto arguments = std::make_shared<FitArguments>();
  verb->add_option("RUN.toml", arguments->file, "the run")->required();
  add_overrides(*verb, arguments->overrides);
  verb->add_option("--memory", arguments->memory, "device memory of each rank, such as 80GiB")
      ->required()
      ->check(CLI::Validator(is_memory_limit, {}))
      ->type_name("SIZE");
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] {
    FitResult result = fit(*arguments);
    status = print(result, arguments->json);
  });
}

} // namespace triax::app
