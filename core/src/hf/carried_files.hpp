// SPDX-License-Identifier: Apache-2.0
// Files of a model's folder that import and export copy and do not read: those of the tokenizer and of generating. A
// checkpoint has them in its folder "hf".
//
// Threads: pure functions. Blocking: copies files. Errors: Error with the file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/stop_request.hpp"
#include "data/tokenizer_choice.hpp"

namespace triax::hf {

inline constexpr const char* kCarriedFolder = data::kImportedFolder; // in a checkpoint

inline constexpr const char* kTokenizerFile = "tokenizer.json";

/// The files of a tokenizer, for messages.
inline constexpr const char* kTokenizerFiles = "tokenizer.json, vocab.json with merges.txt, or tokenizer.model";

/// The names of those that the folder has. Throws Error for one that is not a regular file, or is a pointer of Git LFS.
std::vector<std::string> carried_files(const std::filesystem::path& folder);
/// Whether a tokenizer is among the names. Others, such as tokenizer_config.json, are not enough for one.
bool has_tokenizer(const std::vector<std::string>& names);
/// Copies files from `from` to `into`, below `prefix`: "hf/", or empty.
void copy_files(const std::filesystem::path& from, const std::vector<std::string>& names,
                const checkpoint::StagedFolder& into, const std::string& prefix, const checkpoint::StopRequest& stop);

} // namespace triax::hf
