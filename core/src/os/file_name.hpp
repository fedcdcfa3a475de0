// SPDX-License-Identifier: Apache-2.0
// The current name of an open file, which may have been moved since it was opened.
//
// Header only.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace triax::os {

/// Empty if the file has no name any more, or if the system does not report it.
inline std::filesystem::path name_of_descriptor(int descriptor) {
  std::error_code unknown;
  const std::filesystem::path name =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown);
  return unknown || !std::filesystem::exists(name, unknown) ? std::filesystem::path() : name;
}

} // namespace triax::os
