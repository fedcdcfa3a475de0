// SPDX-License-Identifier: Apache-2.0
// The two sides of `triax compare`, checked: what they run, how they differ, and why they cannot be compared.
//
// Blocking: load_sides() reads files, loads the named plugins, and writes the TOML files of sides with overlays.
// Errors: Error with a file that cannot be written; errors of the user are returned.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/verbs.hpp"
#include "compare/comparison.hpp"

namespace triax::app {

/// The changes of a side.
struct SideArguments {
  std::vector<std::string> changes;    // KEY=VALUE, or a TOML file whose keys override the run's
  std::vector<os::Variable> variables; // environment of its processes
};

struct CompareArguments {
  std::string file;
  std::vector<config::Override> overrides; // of both sides
  SideArguments a, b;
  compare::Plan plan;
  std::string folder; // empty: the default
  bool different_models = false, same = false;
  bool json = false;
  std::string html; // empty: none
};

/// A key whose values differ.
struct KeyDifference {
  std::string key, a, b;
};

/// A variable of the environment; empty: the side does not change it.
struct VariableDifference {
  std::string name;
  std::optional<std::string> a, b;
};

struct LoadedSide {
  std::string name; // "A"
  std::vector<os::Variable> variables;
  config::LoadResult loaded;

  const config::RunConfig& run() const { return *loaded.run; }
  int ranks() const;
};

struct LoadedSides {
  LoadedSide a, b;
  std::vector<KeyDifference> differences;    // keys whose values differ, in the order of the configuration
  std::vector<VariableDifference> variables; // environment variables that differ
  std::set<std::string> given;               // keys of --a and --b
  bool models_differ = false;                // the losses cannot be equal
  std::filesystem::path folder;              // in which the comparison keeps its files
  std::vector<std::string> differing_axes;   // whose communicator or its options differ
};

/// Empty: the sides can be compared.
std::vector<config::Diagnostic> load_sides(const CompareArguments& arguments, LoadedSides& out);

/// Without the keys of a table whose plugin differs, unless the user has given them.
std::vector<KeyDifference> main_differences(const std::vector<KeyDifference>& all, const std::set<std::string>& given);

/// How the comparison starts a side. Writes its configuration to `folder`.
compare::SideRequest request_of(const LoadedSide& side, const std::filesystem::path& folder);

} // namespace triax::app
