// SPDX-License-Identifier: Apache-2.0
#include "data/prefix_lock.hpp"

namespace triax::data {

PrefixLock::PrefixLock(const std::filesystem::path& prefix)
    : file_(prefix.string() + ".lock",
            Error("another process is writing this dataset", prefix.string(),
                  "wait until it has ended, or choose another --output"),
            {"remove what is in its place, make the folder writable, or choose another --output",
             "choose an --output on a file system with flock()"}) {}

} // namespace triax::data
