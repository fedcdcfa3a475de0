// SPDX-License-Identifier: Apache-2.0
// Names of files and folders as a user writes them, before anything is opened.
//
// Blocking: queries the file system. Errors: none. Header only.
#pragma once

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace triax::os {

/// Whether the name is taken, also by a link that leads nowhere, or by what cannot be examined.
inline bool is_there(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::symlink_status(path, unknown).type() != std::filesystem::file_type::not_found;
}

/// The path without "/" and "/." at its end, so that its last part is its name: "a/b" for "a/b/./".
inline std::filesystem::path without_slash(std::filesystem::path path) {
  const auto ends_with_slash = [&] {
    return !path.has_filename() || (path.filename() == "." && path.has_parent_path());
  };
  while (path.has_relative_path() && ends_with_slash()) path = path.parent_path();
  return path;
}

/// The absolute path without links, as far as it exists.
inline std::filesystem::path resolved_path(const std::filesystem::path& path) {
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::absolute(without_slash(path), unknown),
                              found = std::filesystem::weakly_canonical(whole, unknown);
  return unknown ? whole.lexically_normal() : found;
}

/// Whether `path` is `folder`, or is in it. Links are followed; neither needs to exist.
inline bool is_inside(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const std::filesystem::path inner = resolved_path(path), outer = resolved_path(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

} // namespace triax::os
