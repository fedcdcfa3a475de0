// SPDX-License-Identifier: Apache-2.0
#include "train/data_tokenizer.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "config/core_keys.hpp"
#include "config/run_files.hpp"
#include "data/tokenizer_choice.hpp"
#include "plugin/option_text.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

using checkpoint::Manifest;

bool is_present(const fs::path& file) {
  std::error_code unreadable;
  return fs::exists(file, unreadable);
}

/// The corpora that a key of [data] names, as absolute paths.
std::vector<fs::path> corpora_named_by(const std::string& name, const Manifest& manifest, const fs::path& base) {
  const auto found = manifest.config.find("data." + name);
  if (found == manifest.config.end()) return {};
  const std::span<const config::CoreKey> keys = config::find_core_table(config::kDataTable)->keys;
  const auto key = std::ranges::find(keys, name, [](const config::CoreKey& of) { return std::string(of.option.name); });
  const OptionValue value = plugin::parse_option(key->option, found->second);
  std::vector<fs::path> out;
  if (const auto* one = std::get_if<fs::path>(&value); one && !one->empty()) out.push_back(*one);
  if (const auto* several = std::get_if<std::vector<fs::path>>(&value)) out = *several;
  for (fs::path& path : out) path = base / path;
  return out;
}

} // namespace

fs::path run_folder_of(const fs::path& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal(), above = folder.parent_path();
  return above.filename() == config::kCheckpointFolder ? above.parent_path() : above;
}

DataTokenizer find_data_tokenizer(const Manifest& manifest, const fs::path& checkpoint) {
  DataTokenizer out;
  for (const char* key : {"path", "paths", "validation", "validation_paths"})
    for (const fs::path& corpus : corpora_named_by(key, manifest, run_folder_of(checkpoint))) {
      const fs::path info = data::beside(corpus, ".json");
      if (is_present(info)) return {corpus, {}};
      if (out.missing.empty()) out.missing = info;
    }
  return out;
}

} // namespace triax::train
