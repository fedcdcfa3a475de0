// All that can be told about a plugin's file, also about one that does not load.
//
// Threads: any. Ownership: values; names and texts of `library` are the plugin's. Blocking: loads the library.
// Errors: what is wrong with the file becomes `problem`, never an exception.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "plugin/note.hpp"

namespace triax::plugin {

struct Description {
  std::filesystem::path file;
  Note note; // read without loading; empty if the file has none
  std::vector<std::string> needed;
  const Library* library = nullptr; // null: see problem
  std::string problem;              // the whole Error: "FILE: found, but ...\n  its note says ..."
};

Description describe(const std::filesystem::path& file);

/// One line of `triax plugins list`.
struct Row {
  std::string name; // the file's stem
  std::string kind, version, description;
  std::filesystem::path file;
  std::string problem;               // its first line, without the file
  std::filesystem::path shadowed_by; // the file that is found instead
};

/// One JSON object, indented.
std::string to_json(const Description& description);
/// {"plugins": [...]}
std::string to_json(const std::vector<Row>& rows);

/// Every candidate of the folders, in path order, then by name. `program` is called as `program ARGS... FILE` for each,
/// in a process of its own, so that a library that crashes is a row; it must print to_json(Description).
std::vector<Row> list(const std::vector<SearchFolder>& folders, const std::vector<std::string>& program);

} // namespace triax::plugin
