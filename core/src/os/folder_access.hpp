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

} // namespace triax::os
