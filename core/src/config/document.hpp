// SPDX-License-Identifier: Apache-2.0
// One TOML file as a flat list of entries with their positions. Types are checked later, against the tables of keys.
//
// Blocking: reads the file. Errors: SyntaxError, or Error for a file that cannot be read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "triax/error.hpp"

namespace triax::config {

/// Position of an entry. Layers are numbered in the order of reading; a flag has no line.
struct Position {
  std::string file; // as shown in messages; "--set" or another flag; empty: no position
  int layer = 0;
  int line = 0, column = 0;
};

std::string to_text(const Position& position); // "run.toml:5:9"; without a column "run.toml:5"

/// A value as written; its key is not known yet.
struct Written {
  enum class Type { boolean, integer, floating, string, list, table, other };
  Type type = Type::other;
  std::string text; // string: its contents; table: "a table"; other types, and dates: TOML
  std::vector<Written> items;
  Position at;
};

/// As TOML; strings are quoted.
std::string to_toml(const Written& value);

struct Entry {
  std::string table; // "comm.tensor"; empty above the first table
  std::string key;
  Position key_at;
  Written value;
};

struct Document {
  std::vector<Entry> entries;             // in the order of the file
  std::map<std::string, Position> tables; // all tables of the file, by full name
};

/// A file that is not TOML, with the position of the mistake.
class SyntaxError : public Error {
 public:
  SyntaxError(const std::string& message, Position at, const std::string& hint)
      : Error(message, to_text(at), hint), at_(std::move(at)) {}
  const Position& at() const { return at_; }

 private:
  Position at_;
};

/// `shown`: how positions name the file.
Document read_document(const std::filesystem::path& file, const std::string& shown, int layer);
/// The same of a text that is not in a file.
Document parse_document(const std::string& bytes, const std::string& shown, int layer);

} // namespace triax::config
