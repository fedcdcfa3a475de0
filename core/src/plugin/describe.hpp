// SPDX-License-Identifier: Apache-2.0
// Describes a plugin's file, even if it does not load.
//
// Threads: as for run_probe(). Ownership: values; strings in `library` belong to the plugin. Blocking: loads the
// library and creates its object, both in a child process first. Errors: a defect of the file is in `problem`; Error if
// no process can be started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/elf_note.hpp"
#include "plugin/loader.hpp"
#include "plugin/probe_process.hpp"

namespace triax::plugin {

struct Description {
  std::filesystem::path file;
  Note note; // read without loading; empty if the file has none
  std::vector<std::string> needed;
  bool is_library = true;                     // else the file is not a shared library for this machine: see problem
  const Library* library = nullptr;           // null: see problem
  std::string problem;                        // the complete Error: "FILE: found, but ...\n  its ELF note names ..."
  std::vector<std::filesystem::path> shadows; // files with the same name in later folders; set by the caller
};

/// A plugin whose constructor crashes, exits, hangs or fails has a problem too. The object is created with the default
/// options, on a layout of one rank. If some options have no default, an error is not a problem.
Description describe(const std::filesystem::path& file, const CallLimits& limits = {});

/// One line of `triax plugins list`.
struct Row {
  std::string name; // the file's stem
  std::string kind, version, description;
  std::filesystem::path file;
  std::string problem;                        // its first line, without the file
  std::filesystem::path shadowed_by;          // the file that is used instead
  std::vector<std::filesystem::path> shadows; // files that are not used because of this one
};

/// One JSON object, indented.
std::string to_json(const Description& description);
/// {"plugins": [...]}
std::string to_json(const std::vector<Row>& rows);

/// All candidates of the folders, by folder, then by name. Each is loaded in a separate process.
std::vector<Row> list(const std::vector<SearchFolder>& folders, const CallLimits& limits = {});

} // namespace triax::plugin
