// SPDX-License-Identifier: Apache-2.0
// The number of CPU cores that this process may use, from its affinity mask and the quotas of its control groups.
//
// Threads: any. Blocking: reads a few small files. Errors: none; a quota that cannot be read is ignored.
#pragma once

#include <filesystem>

namespace triax::os {

/// At least 1.
int available_cores();

/// The same from explicit inputs: the number of cores in the affinity mask, and the folder that contains /proc and
/// /sys. Uses control groups of versions 1 and 2: the process's group and all above it. A quota of 2.5 cores gives 2.
int available_cores(int affinity, const std::filesystem::path& root);

} // namespace triax::os
