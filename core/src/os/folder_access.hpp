// SPDX-License-Identifier: Apache-2.0
// Checks whether files can be created in a folder, without creating any.
//
// Blocking: queries the file system. Errors: none; the result is a reason.
#pragma once

#include <filesystem>
#include <string>

namespace triax::os {

/// The reason why no file can be created in `folder`, which need not exist yet: "/x is a file, not a folder", "/x:
/// Permission denied". Empty if files can be created.
std::string why_not_writable(const std::filesystem::path& folder);
/// The same of the folder in which `file`, a file or folder, is to be created.
std::string why_not_creatable(const std::filesystem::path& file);

} // namespace triax::os
