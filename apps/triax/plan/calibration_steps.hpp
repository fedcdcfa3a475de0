// SPDX-License-Identifier: Apache-2.0
// The short training runs of triax plan --calibrate: small GPTs of different kinds, their measured steps, and what the
// cost model predicts for them.
//
// Blocking: trains, and computes. Errors: those of CalibrationPrograms; Error if a run is refused.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster.hpp"
#include "plan/calibration_programs.hpp"
#include "triax/planner.hpp"

namespace triax::app {

/// Sizes of the GPTs: those of the wide kind have twice the width.
struct CalibrationSizes {
  std::int64_t hidden = 256, heads = 4, sequence = 128;
};

/// A kind of run. The ranks are at most the machine's cores.
struct CalibrationStep {
  std::string name;
  TrainingPlan plan;
  const char* scheduler = "sched-1f1b";
  bool is_wide = false;
  double measured_s = 0;
  std::shared_ptr<config::LoadResult> loaded{}; // of its TOML file

  int ranks() const { return plan.pipeline * plan.tensor * plan.data; }
};

/// The steps to measure on a machine with this number of cores.
std::vector<CalibrationStep> calibration_steps(int cores);

/// The keys of a run that decide on its plugins, as TOML tables.
std::string plugin_tables(const config::LoadResult& run);

/// Trains in `folder`, where data are, and sets measured_s: the median of the steps after the first ones.
void measure_step(CalibrationStep& step, const CalibrationSizes& sizes, const std::string& plugins,
                  const std::filesystem::path& folder, CalibrationPrograms& programs);
double predict_step_s(const CalibrationStep& step, const cost::Cluster& cluster);

} // namespace triax::app
