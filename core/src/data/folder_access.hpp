// Whether somebody could write into a folder, found out without making anything.
//
// Threads: any. Ownership: values. Blocking: looks at the file system. Errors: none; what is wrong
// is the answer.
#pragma once

#include <filesystem>
#include <string>

namespace triax::data {

/// Why no file can be made in `folder`, which need not be there yet: "/x is a file, not a folder", "/x: Permission
/// denied". Empty where nothing speaks against it.
std::string why_not_writable(const std::filesystem::path& folder);

} // namespace triax::data
