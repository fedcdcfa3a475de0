// SPDX-License-Identifier: Apache-2.0
// The tokenizer of the data that a checkpoint was trained on, from the manifest's keys of [data].
//
// Blocking: looks for files. Errors: Error for a value that is not a path.
#pragma once

#include <filesystem>

#include "checkpoint/manifest.hpp"

namespace triax::train {

/// The folder of the run that saved the checkpoint. Paths in a manifest are relative to it.
std::filesystem::path run_folder_of(const std::filesystem::path& checkpoint);

struct DataTokenizer {
  std::filesystem::path corpus;  // the first with PREFIX.json, as an absolute path; empty: none
  std::filesystem::path missing; // then the PREFIX.json that was looked for; empty: no corpus is named
};
DataTokenizer find_data_tokenizer(const checkpoint::Manifest& manifest, const std::filesystem::path& checkpoint);

} // namespace triax::train
