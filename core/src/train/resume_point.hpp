// SPDX-License-Identifier: Apache-2.0
// Where a run begins: at step 1, or after the step of a checkpoint.
//
// Threads: pure functions. Blocking: reads a manifest. Errors: Error with the file; refusals are returned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "config/run_config.hpp"
#include "executor/parameters.hpp"
#include "triax/error.hpp"

namespace triax::train {

struct ResumePoint {
  std::filesystem::path folder; // of the checkpoint
  std::int64_t step = 0;        // the last step done
  bool weights_only = false;    // the optimizer and the count of steps begin anew: `step` is 0
  bool is_of_run = false;       // found in run.dir, not named by checkpoint.from
};

/// The newest complete checkpoint of the run, else checkpoint.from, else nothing. With checkpoint.resume = "never", a
/// checkpoint of the run is not used. To evaluate, only the weights are read. Throws Error if checkpoint.from is
/// needed, and is not a checkpoint.
std::optional<ResumePoint> resume_point(const config::RunConfig& run);

/// The properties of a run that are compared with a checkpoint.
struct ResumingRun {
  std::span<const executor::GlobalParameter> parameters;
  OptimizerTraits optimizer;
  std::vector<std::string> training_options; // of the model (triax/training_options.hpp)
  checkpoint::DataContent data;
};

/// Why the run cannot continue from the checkpoint: tensors of the model or states of the optimizer that it does not
/// have, or has with another shape or type; a model that gives the weights another meaning; or token files with other
/// content.
Refusals check_resume(const config::RunConfig& run, const ResumePoint& point, const checkpoint::Manifest& manifest,
                      const ResumingRun& resuming);

/// "parallel.tensor = 2 (was 1), batch.micro = 4 (was 2)": the keys that changed since the checkpoint was written.
/// Those that concern files, the log and the start of ranks are left out.
std::string changed_keys(const config::RunConfig& run, const checkpoint::Manifest& manifest);

/// "continues after step 20 from runs/tiny/checkpoints/step-00000020; changed: ...", "begins with the weights of ...".
/// `data`: what the run reads; empty: not known.
std::string to_text(const config::RunConfig& run, const ResumePoint& point, const checkpoint::Manifest& manifest,
                    const checkpoint::DataContent& data);

} // namespace triax::train
