// SPDX-License-Identifier: Apache-2.0
// triax plan: searches the plan under which a run trains fastest on a cluster, and predicts lists of runs.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/memory_limit.hpp"
#include "common/missing_flags.hpp"
#include "common/refuse.hpp"
#include "common/verbs.hpp"
#include "cost/cluster_file.hpp"
#include "plan/calibration.hpp"
#include "plan/list_prediction.hpp"
#include "plan/profile_check.hpp"
#include "plan/run_search.hpp"
#include "train/rank_placement.hpp"

namespace triax::app {

namespace {

constexpr long long kMaxTop = 1000;
constexpr double kMaxTokens = 1e18;

struct PlanArguments {
  std::string list;
  SearchArguments search;
  CalibrationArguments calibration;
};

int plan(const PlanArguments& arguments) {
  if (!arguments.calibration.output.empty()) {
    CalibrationArguments calibration = arguments.calibration;
    calibration.run = arguments.search.file;
    calibration.overrides = arguments.search.overrides;
    calibration.json = arguments.search.json;
    if (calibration.run.empty()) require_nothing({"RUN.toml is required with --calibrate, which measures its plugins"});
    return calibrate(calibration);
  }
  if (arguments.search.cluster.empty())
    require_nothing(
        {"--cluster is required: a file of clusters/ (installed: share/triax/clusters), or one that "
         "--calibrate writes"});
  if (arguments.search.file.empty() && arguments.list.empty()) require_nothing({"RUN.toml or --predict is required"});
  const cost::ClusterFile file = cost::read_cluster(arguments.search.cluster, "--cluster");
  if (!file.cluster) return refuse(file.refusals, arguments.search.json);
  if (!arguments.list.empty())
    if (const Refusals stale = check_profile(*file.cluster, arguments.search.cluster, nullptr); !stale.empty())
      return refuse(stale, arguments.search.json);
  return arguments.list.empty() ? search_run(*file.cluster, arguments.search)
                                : predict_list(*file.cluster, arguments.list, arguments.search.json);
}

/// KEY=VALUE, neither of them empty.
std::string is_setting(const std::string& written) {
  const std::size_t equals = written.find('=');
  const bool is_valid = equals != std::string::npos && equals > 0 && equals + 1 < written.size();
  return is_valid ? "" : "must be KEY=VALUE, got \"" + written + "\"";
}

std::string is_reserve(const std::string& written) {
  return written == kNoReserve ? "" : is_memory_limit(written);
}

} // namespace

void add_plan(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("plan", "finds the layout under which a run trains fastest on a cluster");
  const auto arguments = std::make_shared<PlanArguments>();
  SearchArguments& search = arguments->search;
  CLI::Option* const run = verb->add_option("RUN.toml", search.file, "the run; the plans replace its layout");
  CLI::Option* const cluster =
      verb->add_option("--cluster", search.cluster, "the cluster's file, such as clusters/a100-dgx.toml")
          ->type_name("CLUSTER.toml");
  CLI::Option* const list =
      verb->add_option("--predict", arguments->list, "predicts a list of configurations of GPT instead")
          ->type_name("CONFIGS.csv")
          ->excludes(run);
  const std::vector<CLI::Option*> flags = {
      verb->add_option("--gpus", search.gpus, "number of GPUs [those of the run's layout]")
          ->check(integer_in(1, train::kMaxWorld))
          ->type_name("N"),
      verb->add_option("--top", search.top, "number of plans to print [10]")
          ->check(integer_in(1, kMaxTop))
          ->type_name("N"),
      repeated(verb->add_option("--fix", search.fixed, "restricts the search to a value of a setting, such as tensor=8")
                   ->check(CLI::Validator(is_setting, {}))
                   ->type_name("KEY=VALUE")),
      verb->add_option("--planner", search.planner, "the plugin that searches [plan-sweep]")
          ->check(not_empty())
          ->type_name("PLANNER"),
      verb->add_option("--reserve", search.reserve, "memory of each device that a plan leaves free [2GB]")
          ->check(CLI::Validator(is_reserve, {}))
          ->type_name("SIZE"),
      verb->add_option("--tokens", search.tokens, "prints the days that a training on so many tokens takes")
          ->check(number_in(1, kMaxTokens))
          ->type_name("N"),
      verb->add_flag("--explain", search.explain,
                     "for each setting, shows the best plan with another value, and which part of its step is longer"),
  };
  CLI::Option* const output =
      verb->add_option("--calibrate", arguments->calibration.output,
                       "measures this machine with the run's plugins, and writes a cluster file, in about a minute")
          ->type_name("FILE")
          ->check(not_empty())
          ->excludes(list)
          ->excludes(cluster);
  verb->add_option("--hidden", arguments->calibration.sizes.hidden, "width of the GPTs that --calibrate measures [256]")
      ->type_name("N")
      ->check(CLI::IsMember({16, 32, 64, 128, 256, 512, 1024}))
      ->needs(output);
  for (CLI::Option* const flag : flags) flag->excludes(list)->excludes(output);
  add_overrides(*verb, search.overrides);
  verb->get_option("--set")->excludes(list);
  verb->add_flag("--json", search.json, "prints one JSON object, with the parts of each step");
  verb->callback([arguments, &status] { status = plan(*arguments); });
}

} // namespace triax::app
