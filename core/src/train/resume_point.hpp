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

/// Why the run cannot continue from the checkpoint: tensors of the model or states of the optimizer that it does not
/// have, or has with another shape or type.
Refusals check_resume(const config::RunConfig& run, const ResumePoint& point, const checkpoint::Manifest& manifest,
                      std::span<const executor::GlobalParameter> parameters, const OptimizerTraits& optimizer);

/// "parallel.tensor = 2 (was 1), batch.micro = 4 (was 2)": the keys that changed since the checkpoint was written.
/// Those that concern files, the log and the start of ranks are left out.
std::string changed_keys(const config::RunConfig& run, const checkpoint::Manifest& manifest);

/// "continues after step 20 from runs/tiny/checkpoints/step-00000020; changed: ...", "begins with the weights of ...".
std::string to_text(const config::RunConfig& run, const ResumePoint& point, const checkpoint::Manifest& manifest);

} // namespace triax::train
