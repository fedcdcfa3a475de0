// SPDX-License-Identifier: Apache-2.0
// The list of `triax plan --predict`: one configuration of GPT per line, and what to predict of it.
//
// Blocking: reads the file. Errors: added to a list, with file, line and column name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/load.hpp"

namespace triax::app {

struct PredictedRow {
  int line = 0;
  std::string id, unit, recompute, code, ddp;
  std::map<std::string, long long> number; // by column

  long long at(const char* column) const { return number.at(column); }
};

/// Lines that begin with # are comments. The first other line names the columns, in any order. Adds all errors.
std::vector<PredictedRow> read_predicted(const std::filesystem::path& file, std::vector<config::Diagnostic>& errors);

/// A message about a run with the names of columns in place of TOML keys.
std::string in_columns(const std::string& message);

} // namespace triax::app
