// SPDX-License-Identifier: Apache-2.0
// Refusals of the communicators of a run. Several tables can name one communicator, so one reason can concern several
// tables: it is reported once.
//
// Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "triax/error.hpp"

namespace triax::train {

class CommRefusals {
 public:
  /// `run` must outlive it.
  explicit CommRefusals(const config::RunConfig& run) : run_(run) {}

  /// Adds a reason of the communicator of one table, which serves `axes`. Merges it with an equal reason, and a table
  /// that inherits its plugin with the table that names it.
  void add(const Refusal& reason, const config::PluginChoice& choice, const std::vector<std::string>& axes);

  /// Each reason once, with the tables that it concerns in front of its message and as keys. `before` precedes the
  /// message, and `keys` the keys of the tables.
  Refusals list(std::string_view before = {}, const std::vector<std::string>& keys = {}) const;

 private:
  struct Table {
    std::string named_in, plugin;
    std::vector<std::string> tables; // `named_in` and those that inherit from it
    std::vector<std::string> axes;
  };
  struct Entry {
    Refusal reason;
    std::vector<Table> tables;
  };

  std::vector<std::string> keys_of(const Entry& entry) const;

  const config::RunConfig& run_;
  std::vector<Entry> entries_;
};

} // namespace triax::train
