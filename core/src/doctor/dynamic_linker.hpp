// SPDX-License-Identifier: Apache-2.0
// Where the dynamic linker searches for the libraries that a library needs, without loading it: dlopen() reports only
// the first one that is missing, and no folder.
//
// The order is that of ld.so(8): DT_RPATH (if there is no DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH, /etc/ld.so.cache,
// the default folders. A library that this process has loaded is not searched for.
//
// Threads: any. Ownership: values. Blocking: reads files. Errors: none; files that cannot be read are skipped.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plugin/elf_note.hpp"

namespace triax::doctor {

/// By name ("libz.so.1"), the paths that the cache of ldconfig lists.
using LinkerCache = std::multimap<std::string, std::filesystem::path>;

/// Empty if the file does not exist, or has another format than that of glibc 2.2 and later.
LinkerCache read_linker_cache(const std::filesystem::path& file = "/etc/ld.so.cache");

/// The part of a search that does not depend on the library.
struct LinkerPaths {
  std::vector<std::filesystem::path> library_path; // LD_LIBRARY_PATH
  LinkerCache cache;
  std::vector<std::filesystem::path> defaults;
};
/// Those of this process.
LinkerPaths linker_paths();

struct MissingLibrary {
  std::string name;
  std::filesystem::path needed_by;
  std::vector<std::string> searched; // "RUNPATH of x.so: /opt/lib", in order
};

/// The libraries that a library needs, and those that they need.
struct Dependencies {
  std::vector<std::filesystem::path> files; // found, or loaded in this process
  std::vector<MissingLibrary> missing;
};
Dependencies trace_dependencies(const std::filesystem::path& file, const LinkerPaths& paths);

} // namespace triax::doctor
