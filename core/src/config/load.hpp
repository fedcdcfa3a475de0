// SPDX-License-Identifier: Apache-2.0
// Loads a RunConfig from a TOML file and overrides, with the origin of every value. Reports all errors of the keys and
// data files together.
//
// Blocking: reads files, loads the named plugins. Errors: errors of the user are in LoadResult::refusals, not thrown.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/run_config.hpp"
#include "plugin/probe.hpp"
#include "triax/error.hpp"

namespace triax::config {

/// The purpose for which the run is loaded. It determines what must exist on this machine.
enum class Purpose {
  train,
  /// To evaluate a checkpoint: needs only the corpora of data.validation, and may not be able to write to run.dir.
  evaluate,
  /// To generate text with the weights of a checkpoint: needs no data, and writes no file.
  generate,
  /// Data files, and communicators and kernel sets of the engine, may be missing. Checks that this skips are listed.
  plan,
  /// To create only the schedule: needs no plugin but the scheduler, and no data.
  schedule,
};

/// One `--set a.b=value`, or another flag that sets a key.
struct Override {
  std::string key;
  std::string value;
  std::string flag = "--set"; // how messages name it; "--data text" for one that stands for a key
};

/// One key after all layers, for `triax check` and resolved.toml.
struct ResolvedValue {
  std::string key;           // "batch.global"
  std::string value;         // as TOML text
  std::string origin;        // "run.toml:5:9", "--set", "default", "derived"
  std::string portable = {}; // value for resolved.toml: a path inside run.dir is relative to run.dir
  Position at = {};          // where it was written: none for a default, no line for a flag
};

/// A refusal with its position. `text` is what is printed: "run.toml:5:9: model.heads = 5 ...\n  use heads 4 or 6".
struct Diagnostic {
  std::string text;
  Refusal refusal = {};
  Position at = {}; // where the first of its keys is set, in a file or else by a flag
};

struct LoadResult {
  std::optional<RunConfig> run; // set if there are no errors
  std::vector<ResolvedValue> values;
  std::vector<std::string> dropped; // keys of a plugin that a later layer replaces, with their positions
  std::vector<Diagnostic> refusals;
  std::vector<std::string> unchecked; // checks skipped for lack of something on this machine; see Purpose::plan
  LaunchKeys launch; // the keys that could be read, also if there are errors: ranks need them to agree on the result
};

/// TOML that is not in a file, such as what a checkpoint says of its run.
struct TomlText {
  std::string text;
  std::string shown;          // how messages name it
  std::filesystem::path base; // relative paths in it start here
};

/// `world`: number of ranks, if a launcher has set it; otherwise the layout determines it. `first_load`: `direct` if
/// another process of the run has already probed the plugins.
LoadResult load(const std::filesystem::path& file, const std::vector<Override>& overrides,
                std::optional<int> world = {}, Purpose purpose = Purpose::train,
                plugin::FirstLoad first_load = plugin::FirstLoad::probed);

/// The same of a text.
LoadResult load(const TomlText& toml, const std::vector<Override>& overrides, std::optional<int> world, Purpose purpose,
                plugin::FirstLoad first_load = plugin::FirstLoad::probed);

/// Adds positions. The first of the refusal's keys that is set in a file leads the line; the origins of the other keys
/// follow on separate lines.
Diagnostic diagnose(const Refusal& refusal, const std::vector<ResolvedValue>& values);
/// Errors that concern no key.
Diagnostic diagnostic(ErrorCode code, const Error& error);
Diagnostic diagnostic(ErrorCode code, std::string message, std::string hint = {});
/// An error at a position in another file than the run's TOML.
Diagnostic located_diagnostic(const Position& at, Refusal refusal);
/// An error whose where() is a file, a folder or a flag. `key`: the flag or argument that names it; may be empty.
Diagnostic file_diagnostic(ErrorCode code, const Error& error, const std::string& key = {});

/// resolved.toml: every value, with its origin as a comment. In the run's folder it loads to the same run; in a copy of
/// the folder, to the same run in that copy.
std::string to_toml(const LoadResult& loaded);

} // namespace triax::config
