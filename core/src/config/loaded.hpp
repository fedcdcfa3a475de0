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
#include "triax/error.hpp"

namespace triax::config {

/// One `--set a.b=value`.
struct Override {
  std::string key;
  std::string value;
};

/// One key after all layers, for `triax check` and resolved.toml.
struct ResolvedValue {
  std::string key;    // "batch.global"
  std::string value;  // as TOML text
  std::string origin; // "run.toml:5:9", "--set", "default", "derived"
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
  LaunchKeys launch; // also of a run that was refused, so that its ranks can agree on that: what could be read
};

/// `world`: the number of ranks, where a launcher has decided it; without one it is what the layout asks for.
Loaded load(const std::filesystem::path& file, const std::vector<Override>& overrides, std::optional<int> world = {});

/// Turns a room's or a plugin's Support::no into a refusal: the first full key found in its text ("model.heads") gives
/// the position in front, each further key gets its own in brackets.
Refusal refusal(const Support& support, const std::vector<ResolvedValue>& values);

/// resolved.toml: every value with its origin as a comment; loads to the same run.
std::string to_toml(const Loaded& loaded);

} // namespace triax::config
