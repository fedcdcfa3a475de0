// SPDX-License-Identifier: Apache-2.0
#include "generate/imported_checkpoint.hpp"

#include <system_error>
#include <utility>

#include "checkpoint/manifest.hpp"
#include "common/errors_out.hpp"
#include "common/refuse.hpp"
#include "config/run_files.hpp"
#include "hf/model_config.hpp"
#include "hf/model_import.hpp"
#include "hf/model_tensors.hpp"

namespace triax::app {

namespace fs = std::filesystem;

namespace {

/// Flags that the import names are its own.
Refusals of_import(const Refusals& refusals) {
  Refusals out;
  for (Refusal refusal : refusals) {
    if (refusal.hint.find("--") != std::string::npos) refusal.hint += ", a flag of triax import hf";
    out.add(std::move(refusal));
  }
  return out;
}

} // namespace

bool is_model_folder(const std::string& folder) {
  const auto has = [&](const char* name) {
    std::error_code unreadable;
    return fs::exists(fs::path(folder) / name, unreadable);
  };
  if (folder.empty() || has(checkpoint::kManifestFile)) return false;
  if (has(hf::kConfigFile)) return true;
  return (has(hf::kSingleFile) || has(hf::kIndexFile)) && !has(config::kCheckpointFolder);
}

std::vector<config::Diagnostic> ImportedCheckpoint::import(const std::string& model) {
  model_ = fs::absolute(model).lexically_normal();
  hf::ModelImport from({.folder = model, .output = folder(), .run = folder_.path() / "run.toml"});
  if (!from.refusals().empty()) return diagnostics_of(of_import(from.refusals()));
  try {
    const hf::ImportedModel made = from.write();
    if (made.nonfinite) print_warning(*made.nonfinite);
  } catch (const Error& error) {
    if (!error.where().starts_with(folder_.path().string())) throw;
    throw Error(error.message(), error.where(), error.hint() + "; TMPDIR chooses where this folder is");
  }
  return {};
}

} // namespace triax::app
