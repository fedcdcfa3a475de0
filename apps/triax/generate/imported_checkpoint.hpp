// SPDX-License-Identifier: Apache-2.0
// A folder of transformers as a checkpoint for one command: imported into a temporary folder, which is removed with the
// process.
//
// Threads: a process without other threads. Ownership: owns the folder. Blocking: reads the model, writes the
// checkpoint. Errors: those of `triax import hf`; Error for what cannot be read or written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "os/temporary_folder.hpp"

namespace triax::app {

/// A folder with a config.json that is not a checkpoint, or with weights alone, whose import says what it lacks.
bool is_model_folder(const std::string& folder);

class ImportedCheckpoint {
 public:
  /// Returns what the import refuses, and prints a warning about weights that are not finite. Once.
  std::vector<config::Diagnostic> import(const std::string& model);
  std::filesystem::path folder() const { return folder_.path() / "imported"; }
  /// The folder of transformers.
  const std::filesystem::path& model() const { return model_; }

 private:
  os::TemporaryFolder folder_{"triax-import-"};
  std::filesystem::path model_;
};

} // namespace triax::app
