// SPDX-License-Identifier: Apache-2.0
// `triax plan RUN.toml --calibrate FILE`: measures this machine with the run's plugins, fits the constants of the cost
// model, and writes them as a cluster file.
//
// Blocking: about a minute. Errors: printed.
#pragma once

#include <string>
#include <vector>

#include "config/load.hpp"
#include "plan/calibration_steps.hpp"

namespace triax::app {

struct CalibrationArguments {
  std::string run, output; // RUN.toml, FILE
  std::vector<config::Override> overrides;
  CalibrationSizes sizes;
  bool json = false;
};

/// Returns the exit status.
int calibrate(const CalibrationArguments& arguments);

} // namespace triax::app
