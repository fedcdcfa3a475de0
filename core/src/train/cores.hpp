// SPDX-License-Identifier: Apache-2.0
// How many CPU cores this process may use: the affinity mask, and the quotas of its control groups.
//
// Threads: any. Ownership: values. Blocking: reads a few small files. Errors: none; a quota that cannot
// be read is none.
#pragma once

#include <filesystem>

namespace triax::train {

/// At least 1.
int available_cores();

/// The same from what it depends on: the number of cores in the affinity mask, and where /proc and /sys are found.
/// Control groups of version 1 and 2 count, the process's own and all above it; a quota of 2.5 cores gives 2.
int available_cores(int affinity, const std::filesystem::path& root);

} // namespace triax::train
