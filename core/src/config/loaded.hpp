// SPDX-License-Identifier: Apache-2.0
// From a TOML file and overrides to a RunConfig, with the origin of every value and all refusals at once.
//
// Threads: one. Ownership: values. Blocking: reads files, loads the plugins named. Errors: what the user wrote wrong
// becomes a refusal, never an exception.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "plugin/probe.hpp"
#include "triax/error.hpp"

namespace triax::config {

/// What a run is loaded for, and so what it must have on this machine.
enum class Purpose {
  train,
  /// Data files, and communicators and kernel sets of the engine, may be missing; what is then not checked is listed.
  plan,
  /// To make the schedule alone: needs no plugin but the scheduler, and no data.
  schedule,
};

/// One `--set a.b=value`.
struct Override {
  std::string key;
  std::string value;
};

/// One key after all layers, for `triax check` and resolved.toml.
struct ResolvedValue {
  std::string key;           // "batch.global"
  std::string value;         // as TOML text
  std::string origin;        // "run.toml:5:9", "--set", "default", "derived"
  std::string portable = {}; // the value for resolved.toml: a path within run.dir is relative to run.dir
};

/// A whole refusal as it is printed: "run.toml:5:9: model.heads = 5 ...\n  use heads 4 or 6".
struct Refusal {
  std::string text;
};

struct Loaded {
  std::optional<RunConfig> run; // set if nothing was refused
  std::vector<ResolvedValue> values;
  std::vector<std::string> dropped; // keys of an earlier layer that a swapped plugin made void, with where they stood
  std::vector<Refusal> refusals;
  std::vector<std::string> unchecked; // what this machine lacks, and what was therefore not checked; see Purpose::plan
  LaunchKeys launch; // also of a run that was refused, so that its ranks can agree on that: what could be read
};

/// `world`: the number of ranks, where a launcher has decided it; without one it is what the layout asks for.
/// `first_load`: direct in a process whose plugins another one of the run has probed.
Loaded load(const std::filesystem::path& file, const std::vector<Override>& overrides, std::optional<int> world = {},
            Purpose purpose = Purpose::train, plugin::FirstLoad first_load = plugin::FirstLoad::probed);

/// Turns a room's or a plugin's Support::no into a refusal: the first full key found in its text ("model.heads") gives
/// the position in front, each further key gets its own in brackets.
Refusal refusal(const Support& support, const std::vector<ResolvedValue>& values);

/// resolved.toml: every value with its origin as a comment. In the run's folder it loads to the same run; in a copy of
/// the folder, to the same run in that copy.
std::string to_toml(const Loaded& loaded);

} // namespace triax::config
