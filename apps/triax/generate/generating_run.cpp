// SPDX-License-Identifier: Apache-2.0
#include "generate/generating_run.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "common/imported_tokenizer.hpp"
#include "common/resolved_split.hpp"
#include "config/core_keys.hpp"
#include "config/run_files.hpp"
#include "plugin/option_text.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

using checkpoint::Manifest;

/// Paths in a manifest are relative to the run's folder.
fs::path run_folder_of(const fs::path& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal(), above = folder.parent_path();
  return above.filename() == config::kCheckpointFolder ? above.parent_path() : above;
}

bool describes_generating(const std::string& key) {
  constexpr std::string_view kTables[] = {"model.", "kernels.", "plugins."};
  return std::ranges::any_of(kTables, [&](std::string_view table) { return key.starts_with(table); }) ||
         key == "train.precision" || key == "train.stall_timeout_s";
}

bool is_present(const fs::path& file) {
  std::error_code unreadable;
  return fs::exists(file, unreadable);
}

/// The corpora that a key of [data] names, as absolute paths.
std::vector<fs::path> corpora_named_by(const std::string& name, const Manifest& manifest, const fs::path& base) {
  const auto found = manifest.config.find("data." + name);
  if (found == manifest.config.end()) return {};
  const std::span<const config::CoreKey> keys = config::find_core_table("data")->keys;
  const auto key = std::ranges::find(keys, name, [](const config::CoreKey& of) { return std::string(of.option.name); });
  const OptionValue value = plugin::parse_option(key->option, found->second);
  std::vector<fs::path> out;
  if (const auto* one = std::get_if<fs::path>(&value); one && !one->empty()) out.push_back(*one);
  if (const auto* several = std::get_if<std::vector<fs::path>>(&value)) out = *several;
  for (fs::path& path : out) path = base / path;
  return out;
}

} // namespace

config::LoadResult load_generating_run(const GeneratingSource& source, const std::vector<config::Override>& overrides,
                                       std::optional<int> world, plugin::FirstLoad first_load) {
  const fs::path base = run_folder_of(source.checkpoint);
  std::map<std::string, std::string> values = {{"run.dir", plugin::to_toml(base)},
                                               {"parallel.data", "1"},
                                               {"batch.global", "1"},
                                               {"schedule.plugin", "\"sched-1f1b\""},
                                               {"comm.plugin", "\"comm-local\""},
                                               {"kernels.plugin", "\"kernels-cpu\""},
                                               {"optimizer.plugin", "\"optim-adamw\""},
                                               {"optimizer.lr", "0"},
                                               {"train.steps", "1"}};
  for (const auto& [key, value] : source.manifest.config)
    if (describes_generating(key)) values[key] = value;
  std::string toml;
  for (const auto& [key, value] : values) toml += text("{} = {}\n", key, value);
  config::LoadResult out = with_split(config::load(config::TomlText{toml, source.shown.string(), base}, overrides,
                                                   world, config::Purpose::generate, first_load));
  if (!out.run) return out;
  out.run->checkpoint.resume = "never";
  out.run->checkpoint.load = "weights";
  out.run->checkpoint.from = fs::absolute(source.checkpoint);
  return out;
}

data::TextTokenizer tokenizer_of(const TokenizerSource& source, const data::TokenizerChoice& given) {
  std::vector<std::int32_t> ends = read_end_tokens(source.model_folder, source.vocab);
  if (!given.name.empty())
    return data::make_text_tokenizer(data::open_tokenizer(given), "--tokenizer " + given.name, std::move(ends));
  ImportedTokenizer imported = read_imported_tokenizer(source.model_folder);
  if (imported.tokenizer)
    return data::make_text_tokenizer(std::move(imported.tokenizer), imported.from, std::move(ends));
  std::vector<fs::path> corpora;
  for (const char* key : {"path", "paths", "validation", "validation_paths"})
    for (const fs::path& corpus : corpora_named_by(key, source.manifest, run_folder_of(source.checkpoint)))
      corpora.push_back(corpus);
  for (const fs::path& corpus : corpora)
    if (is_present(data::beside(corpus, ".json"))) return data::open_text_tokenizer_of(corpus);
  const std::string looked =
      corpora.empty() ? std::string() : text(", and {} does not exist", data::beside(corpora.front(), ".json"));
  throw Error(text("the tokenizer is not known: {} has neither tokenizer.json nor GPT-2's vocab.json and merges.txt{}",
                   source.model_folder, looked),
              {}, "name it: --tokenizer byte, or the path of a tokenizer.json");
}

} // namespace triax::app
