// SPDX-License-Identifier: Apache-2.0
// Whether a run may write its records to a file.
//
// Threads: any. Blocking: reads the beginning of the file. Errors: none; a file that cannot be read counts as another
// file.
#pragma once

#include <filesystem>

namespace triax::config {

/// Whether the file exists and holds something else than the records of a run.
bool is_not_a_metrics_file(const std::filesystem::path& file);

} // namespace triax::config
