// SPDX-License-Identifier: Apache-2.0
#include "train/train_files.hpp"

#include <filesystem>
#include <system_error>

#include "common/resolved_split.hpp"
#include "config/run_files.hpp"
#include "generate/imported_checkpoint.hpp"
#include "train/find_checkpoint.hpp"
#include "train/machine_memory.hpp"
#include "train/offload_file.hpp"

namespace triax::app {

namespace {

/// The log of a rank or of the launcher: also in this file of the run's folder, unless the run only reads it.
std::unique_ptr<Log> run_log(const config::RunConfig& run, const std::filesystem::path& file, int rank,
                             const report::OnStderr& on_stderr) {
  return report::make_run_log(report::parse_level(run.log.level), run.evaluates ? std::filesystem::path() : file, rank,
                              on_stderr);
}

/// The refusal of a folder of transformers where a run is expected.
config::LoadResult refuse_model_folder(const TrainArguments& arguments) {
  const std::string step = text("import it: triax import hf {} --output DIR --run RUN.toml; then name RUN.toml{}",
                                arguments.file, arguments.evaluates ? " --checkpoint DIR" : "");
  config::LoadResult out;
  out.refusals.push_back(config::file_diagnostic(
      ErrorCode::kNotReadable, Error("is a model's folder, not the TOML file of a run", arguments.file, step)));
  return out;
}

/// The TOML to load: of a run's folder, that with its values.
std::filesystem::path toml_of(const TrainArguments& arguments) {
  const std::filesystem::path resolved = std::filesystem::path(arguments.file) / config::kResolvedFile;
  std::error_code unknown;
  return arguments.evaluates && std::filesystem::is_regular_file(resolved, unknown)
             ? resolved
             : std::filesystem::path(arguments.file);
}

} // namespace

config::LoadResult load_run(const TrainArguments& arguments, std::optional<int> world, plugin::FirstLoad first_load) {
  if (is_model_folder(arguments.file)) return refuse_model_folder(arguments);
  const config::Purpose purpose = arguments.evaluates ? config::Purpose::evaluate : config::Purpose::train;
  config::LoadResult out =
      with_split(config::load(toml_of(arguments), arguments.overrides, world, purpose, first_load));
  if (!out.run || arguments.checkpoint.empty()) return out;
  out.run->checkpoint.resume = "never";
  out.run->checkpoint.load = "weights";
  try {
    out.run->checkpoint.from = std::filesystem::absolute(train::find_checkpoint(arguments.checkpoint));
  } catch (const train::CheckpointError& error) {
    out.run.reset();
    const std::string where = error.where().empty() ? "" : error.where() + ": ";
    out.refusals.push_back(config::file_diagnostic(
        error.code(), Error(where + error.message(), "--checkpoint", error.hint()), "--checkpoint"));
  }
  return out;
}

train::CheckedRun ask(const config::RunConfig& run, const train::PreflightRequest& request) {
  const auto quiet = report::make_run_log(LogLevel::warn, {}, 0);
  train::CheckedRun checked = train::preflight_in_child(run, *quiet, request);
  if (!checked.preflight.refusals.empty()) return checked;
  checked.preflight.refusals.add(train::fits_in_memory(checked.preflight, checked.placement));
  checked.preflight.refusals.add(train::check_offload_folder(run, checked.preflight, checked.placement));
  return checked;
}

std::vector<config::Diagnostic> refusals(const config::LoadResult& loaded, const train::Preflight& checked) {
  std::vector<config::Diagnostic> out;
  for (const Refusal& answer : checked.refusals) out.push_back(config::diagnose(answer, loaded.values));
  return out;
}

std::vector<std::unique_ptr<Log>> rank_logs(const config::RunConfig& run, int ranks) {
  std::vector<std::unique_ptr<Log>> out;
  out.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    out.push_back(rank_log(run, rank, {rank == 0 ? LogLevel::trace : LogLevel::warn}));
  return out;
}

std::unique_ptr<Log> rank_log(const config::RunConfig& run, int rank, const report::OnStderr& on_stderr) {
  return run_log(run, train::log_file(run, rank), rank, on_stderr);
}

std::unique_ptr<Log> launcher_log(const config::RunConfig& run) {
  return run_log(run, run.folder / config::kLauncherLog, report::kLauncher, {});
}

} // namespace triax::app
