// SPDX-License-Identifier: Apache-2.0
#include "train/find_checkpoint.hpp"

#include <system_error>
#include <utility>

#include "checkpoint/manifest.hpp"
#include "config/load.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNameCheckpoint = "name a checkpoint folder (step-N), a run's folder, or its TOML file";
constexpr const char* kNameRun = "name a run's folder, its TOML file, or a folder of checkpoints";

bool is_folder(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code unreadable;
  return fs::exists(folder / checkpoint::kManifestFile, unreadable);
}

/// "runs/tiny" for "runs/tiny/"
fs::path without_slash(const fs::path& path) {
  return path.has_filename() || path == path.root_path() ? path : path.parent_path();
}

/// Only the keys are of interest: the plugins and the data of the run may be missing.
config::RunConfig load_keys(const fs::path& toml) {
  config::LoadResult loaded = config::load(toml, {}, {}, config::Purpose::schedule);
  if (!loaded.run) // the text has its own position and next step
    throw CheckpointError(loaded.refusals.front().refusal.code, loaded.refusals.front().text);
  return std::move(*loaded.run);
}

/// The checkpoint that a run begins with; empty if there is none, or only the run's folder is named.
fs::path begins_with(const fs::path& run) {
  return is_folder(run) ? fs::path() : fs::path(load_keys(run).checkpoint.from);
}

/// `hint`: which paths may be named.
fs::path folder_of_checkpoints(const fs::path& run, const std::string& hint) {
  if (run.empty()) throw CheckpointError(ErrorCode::kMissing, "the name of a checkpoint or run is empty", {}, hint);
  std::error_code unknown;
  const fs::file_status status = fs::status(run, unknown);
  if (status.type() == fs::file_type::not_found)
    throw CheckpointError(ErrorCode::kNotFound, "does not exist", run.string(), hint);
  if (status.type() != fs::file_type::directory) {
    if (run.extension() == ".toml") return load_keys(run).checkpoints();
    throw CheckpointError(ErrorCode::kNotReadable, "is not a checkpoint", run.string(), hint);
  }
  const fs::path inside = run / config::kCheckpointFolder;
  return is_folder(inside) ? inside : run;
}

/// Also if there are none.
RunCheckpoints search_checkpoints(const fs::path& named, const std::string& hint) {
  const bool is_step = checkpoint::step_of(named.filename().string()).has_value();
  if (is_folder(named) && is_step && !is_checkpoint(named))
    throw CheckpointError(ErrorCode::kNotReadable,
                          text("has no {}: the checkpoint is not complete", checkpoint::kManifestFile), named.string(),
                          "use another checkpoint");
  if (is_folder(named) && is_checkpoint(named))
    throw CheckpointError(ErrorCode::kNotReadable, "is a checkpoint, not a run", named.string(),
                          "triax checkpoint show describes it");
  RunCheckpoints out{folder_of_checkpoints(named, hint), {}, {}};
  out.found = checkpoint::checkpoints_in(out.folder);
  out.incomplete = checkpoint::incomplete_in(out.folder);
  return out;
}

/// `hint`: which paths may be named; `more`: a next step beside that of every run.
[[noreturn]] void refuse_none(const fs::path& folder, const fs::path& named, const std::string& hint,
                              const std::string& more) {
  std::string next = "a run saves one at its end, when it is stopped, and every checkpoint.every steps" + more;
  if (!is_folder(named)) next = text("train it with: triax train {}; ", named) + next;
  throw CheckpointError(ErrorCode::kNotFound, text("no complete checkpoint in {}", folder), {},
                        folder == named ? hint : next);
}

} // namespace

RunCheckpoints find_checkpoints(const fs::path& run) {
  const fs::path named = without_slash(run);
  RunCheckpoints out = search_checkpoints(named, kNameRun);
  if (out.found.empty()) refuse_none(out.folder, named, kNameRun, {});
  return out;
}

fs::path find_checkpoint(const fs::path& path, const std::string& others) {
  fs::path named = without_slash(path);
  if (is_folder(named) && is_checkpoint(named)) return named;
  const std::string hint = kNameCheckpoint + others;
  const RunCheckpoints all = search_checkpoints(named, hint);
  if (!all.found.empty()) return all.found.back().folder;
  const fs::path from = begins_with(named);
  refuse_none(all.folder, named, hint, from.empty() ? "" : text("; name {} for the weights that it begins with", from));
}

} // namespace triax::train
