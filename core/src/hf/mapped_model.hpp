// SPDX-License-Identifier: Apache-2.0
// Model plugins that offer HfMapping, and a model that one of them creates.
//
// Threads: the main thread. Ownership: libraries stay loaded; a MappedModel owns its object. Blocking: loads libraries
// and calls them, the first time in a child process. Errors: Error with the plugin.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hf/model_config.hpp"
#include "hf/row_map.hpp"
#include "plugin/loader.hpp"
#include "triax/layout.hpp"
#include "triax/model.hpp"
#include "triax/options.hpp"

namespace triax::hf {

struct MappedPlugin {
  std::string name; // "model-gpt"
  const plugin::Library* library = nullptr;
  OptionRows rows;
  std::vector<HfArchitecture> architectures;

  const HfArchitecture* find(const std::string& architecture) const;
};

/// The folders of --path, then those of every run.
std::vector<plugin::SearchFolder> search_folders_after(const std::vector<std::filesystem::path>& paths);

/// The plugin with this name or path. Throws Error if it does not offer HfMapping.
MappedPlugin mapped_plugin(const std::string& given, const std::vector<plugin::SearchFolder>& folders);
/// Those of the search folders that offer HfMapping. `notes`: why others cannot be used.
std::vector<MappedPlugin> mapped_plugins(const std::vector<plugin::SearchFolder>& folders,
                                         std::vector<std::string>& notes);

/// A parameter of the engine, and how the format stores it.
struct StoredParameter {
  std::string name; // "block 3/attention.qkv.weight"
  Shape shape;
  HfParameter row; // with the block's number in its names
  RowMap map;

  std::int64_t columns() const { return shape.rank() > 1 ? shape[-1] : 1; }
  Shape tensor_shape(std::size_t tensor) const;
};

class MappedModel {
 public:
  /// Options that `texts` does not have get their default. `texts` must have "vocab".
  MappedModel(const MappedPlugin& plugin, const OptionTexts& texts);

  /// The refusals of the model, on one rank.
  Refusals refusals() const;
  /// Its transformer blocks.
  int blocks() const;
  /// The values that the model computes for options that stand for a default.
  OptionTexts resolved_options() const;
  /// The plugin's table. Throws the plugin's Error if the architecture cannot store a model with these options.
  std::vector<HfParameter> rows(const HfArchitecture& architecture) const;
  /// Every parameter, in the order of the model; tied ones once. Throws Error if the table lacks one.
  std::vector<StoredParameter> parameters(const HfArchitecture& architecture) const;

 private:
  const MappedPlugin& plugin_;
  const std::int64_t vocab_;
  const Options options_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  const plugin::Instance<Model> model_;
  const HfMapping* const mapping_; // interface of model_
};

} // namespace triax::hf
