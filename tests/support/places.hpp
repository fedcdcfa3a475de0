// Where a test finds what was built with it: a build folder has the shape of an installation, and programs of both look
// around themselves. So a test program goes on working when its installation is moved.
//
// Threads: any. Ownership: values. Blocking: reads a link. Errors: std::filesystem's.
#pragma once

#include <filesystem>
#include <string>

namespace triax::test {

/// The folder with bin, lib and share that this program is in.
inline std::filesystem::path installation() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
}

/// `folder`: of the installation.
inline std::filesystem::path plugin_file(const std::string& name, const std::string& folder = "lib/triax/plugins") {
  return installation() / folder / (name + ".so");
}

} // namespace triax::test
