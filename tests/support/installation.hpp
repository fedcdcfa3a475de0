// SPDX-License-Identifier: Apache-2.0
// Finds files that were built with a test. A build folder has the layout of an installation, and programs of both
// search relative to themselves. So a test program still works when its installation is moved.
//
// Threads: any. Blocking: reads a link. Errors: those of std::filesystem.
#pragma once

#include <filesystem>
#include <string>

namespace triax::test {

/// The folder with bin, lib and share that contains this program.
inline std::filesystem::path installation() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
}

/// `folder`: within the installation.
inline std::filesystem::path plugin_file(const std::string& name, const std::string& folder = "lib/triax/plugins") {
  return installation() / folder / (name + ".so");
}

/// A file that tests/CMakeLists.txt puts into the build folder and the bundle.
inline std::filesystem::path test_file(const std::string& name) {
  return installation() / "share/triax/tests" / name;
}

} // namespace triax::test
