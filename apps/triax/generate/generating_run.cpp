// SPDX-License-Identifier: Apache-2.0
#include "generate/generating_run.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <variant>

#include "config/core_keys.hpp"
#include "config/run_files.hpp"
#include "data/tokenizer/json_location.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "hf/carried_files.hpp"
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

/// Of a key of [data], as absolute paths.
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

/// eos_token_id of generation_config.json: a number, a list of numbers, or absent.
std::vector<std::int32_t> ends_of_imported(const fs::path& file) {
  if (!is_present(file)) return {};
  const std::string hint = "remove it, or restore it from the imported model";
  const nlohmann::json json = data::parse_json(file, data::read_whole(file, hint), hint);
  if (!json.is_object()) throw Error("is not a JSON object", file.string(), hint);
  if (!json.contains("eos_token_id") || json["eos_token_id"].is_null()) return {};
  nlohmann::json ids = json["eos_token_id"];
  if (!ids.is_array()) ids = nlohmann::json::array({ids});
  std::vector<std::int32_t> out;
  for (const nlohmann::json& id : ids) {
    if (!id.is_number_integer()) throw Error("eos_token_id is not a token id", file.string(), hint);
    out.push_back(id.get<std::int32_t>());
  }
  return out;
}

} // namespace

config::LoadResult load_generating_run(const fs::path& checkpoint, const Manifest& manifest,
                                       const std::vector<config::Override>& overrides, std::optional<int> world,
                                       plugin::FirstLoad first_load) {
  const fs::path base = run_folder_of(checkpoint);
  std::map<std::string, std::string> values = {{"run.dir", plugin::to_toml(base)},
                                               {"parallel.data", "1"},
                                               {"batch.global", "1"},
                                               {"schedule.plugin", "\"sched-1f1b\""},
                                               {"comm.plugin", "\"comm-local\""},
                                               {"kernels.plugin", "\"kernels-cpu\""},
                                               {"optimizer.plugin", "\"optim-adamw\""},
                                               {"optimizer.lr", "0"},
                                               {"train.steps", "1"}};
  for (const auto& [key, value] : manifest.config)
    if (describes_generating(key)) values[key] = value;
  std::string toml;
  for (const auto& [key, value] : values) toml += text("{} = {}\n", key, value);
  const std::string file = (checkpoint / checkpoint::kManifestFile).string();
  config::LoadResult out =
      config::load(config::TomlText{toml, file, base}, overrides, world, config::Purpose::generate, first_load);
  if (!out.run) return out;
  out.run->checkpoint.resume = "never";
  out.run->checkpoint.load = "weights";
  out.run->checkpoint.from = fs::absolute(checkpoint);
  return out;
}

data::TextTokenizer tokenizer_of(const fs::path& checkpoint, const Manifest& manifest,
                                 const data::TokenizerChoice& given) {
  if (!given.name.empty()) return data::text_tokenizer(data::open_tokenizer(given), "--tokenizer " + given.name);
  const fs::path imported = checkpoint / hf::kCarriedFolder, file = imported / "tokenizer.json";
  if (is_present(file))
    return data::text_tokenizer(data::read_tokenizer_json(file), file.string(),
                                ends_of_imported(imported / "generation_config.json"));
  std::vector<fs::path> corpora;
  for (const char* key : {"path", "paths", "validation", "validation_paths"})
    for (const fs::path& corpus : corpora_named_by(key, manifest, run_folder_of(checkpoint))) corpora.push_back(corpus);
  for (const fs::path& corpus : corpora)
    if (is_present(data::beside(corpus, ".json"))) return data::text_tokenizer_of(corpus);
  const std::string looked = corpora.empty() ? std::string("the manifest names no data")
                                             : text("{} does not exist", data::beside(corpora.front(), ".json"));
  throw Error(
      text("the tokenizer is not known: the checkpoint has no {}/tokenizer.json, and {}", hf::kCarriedFolder, looked),
      {}, "name it: --tokenizer byte, or the path of a tokenizer.json");
}

} // namespace triax::app
