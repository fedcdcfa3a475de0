// SPDX-License-Identifier: Apache-2.0
#include "common/resolved_split.hpp"

#include "config/core_keys.hpp"
#include "plan/stage_split.hpp"
#include "report/units.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::app {

config::LoadResult with_split(config::LoadResult loaded) {
  try {
    // Preflight reports the warnings of plugins.
    plan::resolve_split(loaded, null_log());
  } catch (const Error& error) { // no process can be started
    loaded.run.reset();
    loaded.refusals.push_back(config::diagnostic(ErrorCode::kUnsupported, error));
  }
  return loaded;
}

std::string split_text(const config::RunConfig& run) {
  if (!run.parallel.excess) return {};
  return text(
      "parallel.split = \"{}\" is {}: the slowest stage takes {} more than the mean of all stages, and with an "
      "even split {} more (estimated by the cost model)",
      config::kAutomaticSplit, run.values.at("parallel.split"), report::percent_text(run.parallel.excess->automatic),
      report::percent_text(run.parallel.excess->even));
}

} // namespace triax::app
