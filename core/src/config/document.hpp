// SPDX-License-Identifier: Apache-2.0
// One TOML file as a flat list of what it says and where; the types are checked later, against the tables of keys.
//
// Threads: one. Ownership: values. Blocking: reads the file. Errors: Error with file:line:column.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace triax::config {

/// Where something was written. Layers are numbered in the order they are read; a flag has no line.
struct Position {
  std::string file; // as it is shown; "--set" for a flag, empty: nowhere
  int layer = 0;
  int line = 0, column = 0;
};

std::string to_text(const Position& position); // "run.toml:5:9"

/// A value as written, before anything is known of its key.
struct Written {
  enum class Type { boolean, integer, floating, string, list, table, other };
  Type type = Type::other;
  std::string text; // boolean, integer, floating: and other (a date): TOML; string: its contents; table: that it is one
  std::vector<Written> items;
  Position at;
};

/// As TOML: strings in quotes.
std::string to_toml(const Written& value);

struct Entry {
  std::string table; // "comm.tensor"; empty above the first table
  std::string key;
  Position key_at;
  Written value;
};

struct Document {
  std::vector<Entry> entries;             // in the order of the file
  std::map<std::string, Position> tables; // every table written, by full name
};

/// `shown` is how positions name the file.
Document read_document(const std::filesystem::path& file, const std::string& shown, int layer);

} // namespace triax::config
