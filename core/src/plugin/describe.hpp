// SPDX-License-Identifier: Apache-2.0
// Everything that is known about a plugin's file, also about one that does not load.
//
// Threads: as run_probe(). Ownership: values; names and texts of `library` are the plugin's. Blocking: loads the
// library and makes its object, both in a child process first. Errors: what is wrong with the file becomes `problem`;
// Error if no process can be started.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "plugin/note.hpp"
#include "plugin/probe_process.hpp"

namespace triax::plugin {

struct Description {
  std::filesystem::path file;
  Note note; // read without loading; empty if the file has none
  std::vector<std::string> needed;
  const Library* library = nullptr;           // null: see problem
  std::string problem;                        // the whole Error: "FILE: found, but ...\n  its note says ..."
  std::vector<std::filesystem::path> shadows; // files of the same name in later folders; the caller's to fill
};

/// A plugin whose constructor crashes, exits or never returns has a problem too. The object is made with the defaults
/// of its options, on a layout of one rank; one that refuses these is not broken.
Description describe(const std::filesystem::path& file, const CallLimits& limits = {});

/// One line of `triax plugins list`.
struct Row {
  std::string name; // the file's stem
  std::string kind, version, description;
  std::filesystem::path file;
  std::string problem;                        // its first line, without the file
  std::filesystem::path shadowed_by;          // the file that is found instead
  std::vector<std::filesystem::path> shadows; // files that are not found because of this one
};

/// One JSON object, indented.
std::string to_json(const Description& description);
/// {"plugins": [...]}
std::string to_json(const std::vector<Row>& rows);

/// Every candidate of the folders, in path order, then by name, each loaded in a process of its own.
std::vector<Row> list(const std::vector<SearchFolder>& folders, const CallLimits& limits = {});

} // namespace triax::plugin
