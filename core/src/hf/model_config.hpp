// SPDX-License-Identifier: Apache-2.0
// config.json of a model's folder, and its translation to the options of a model plugin and back, by the tables of
// HfMapping.
//
// Threads: pure functions. Blocking: read_model_config() reads the file. Errors: Error for a file that is not valid;
// what a valid file asks for and the model cannot do is added to `refusals`, key by key.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "triax/abi.h"
#include "triax/error.hpp"
#include "triax/hf_mapping.hpp"
#include "triax/options.hpp"

namespace triax::hf {

inline constexpr const char* kConfigFile = "config.json";

struct ModelConfig {
  std::filesystem::path file;
  std::vector<std::string> architectures; // may be empty
  std::string model_type;                 // may be empty
  /// The other keys, and their values as JSON. A key in an object is "rope_parameters.rope_theta" (config_keys.hpp).
  std::map<std::string, std::string> values;
};
ModelConfig read_model_config(const std::filesystem::path& folder);

/// By name; the rows of the plugin's table, and "vocab".
using OptionRows = std::map<std::string, triax_option>;
/// By name; as --set takes it.
using OptionTexts = std::map<std::string, std::string>;

/// For whom a file is read.
struct ConfigReader {
  std::string plugin; // for messages
  OptionRows rows;
  std::set<std::string> ignored = {}; // keys, or objects of keys, that the user wants to ignore
};

/// The options that the file and the architecture set.
OptionTexts options_of(const ModelConfig& config, const HfArchitecture& architecture, const ConfigReader& reader,
                       Refusals& refusals);

/// The keys of config.json for a model with these options. `resolved`: values to write in place of those that stand for
/// a default. `from`: where the options are from, for errors.
std::vector<std::pair<std::string, std::string>> config_of(const OptionTexts& options, const OptionTexts& resolved,
                                                           const HfArchitecture& architecture, const OptionRows& rows,
                                                           const std::string& from, Refusals& refusals);

/// The file's text. `values`: keys and JSON values, in order; `dtype`: "float32". `carried`: the config.json that the
/// weights came with, or empty; its keys that the model ignores, such as the ids of tokens, are kept, unless
/// `replacing` has them, with JSON values.
std::string config_text(const HfArchitecture& architecture,
                        const std::vector<std::pair<std::string, std::string>>& values, const std::string& dtype,
                        const std::filesystem::path& carried,
                        const std::vector<std::pair<std::string, std::string>>& replacing = {});

} // namespace triax::hf
