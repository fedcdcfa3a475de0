// SPDX-License-Identifier: Apache-2.0
// Pointers of Git LFS: `git clone` without git-lfs writes a small text in the place of each large file of a model.
//
// Threads: pure functions. Blocking: reads the beginning of the file. Errors: Error with the file.
#pragma once

#include <filesystem>

#include "os/input_file.hpp"

namespace triax::hf {

/// Throws Error if `file`, which `path` names, is such a text.
void refuse_lfs_pointer(const os::InputFile& file, const std::filesystem::path& path);

} // namespace triax::hf
