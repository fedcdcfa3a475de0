// SPDX-License-Identifier: Apache-2.0
#include "generate/generating_run.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "common/resolved_split.hpp"
#include "hf/imported_tokenizer.hpp"
#include "hf/model_config.hpp"
#include "os/path_names.hpp"
#include "plugin/option_text.hpp"
#include "train/data_tokenizer.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

bool describes_generating(const std::string& key) {
  constexpr std::string_view kTables[] = {"model.", "kernels.", "plugins."};
  return std::ranges::any_of(kTables, [&](std::string_view table) { return key.starts_with(table); }) ||
         key == "train.precision" || key == "train.stall_timeout_s";
}

/// Only a model that was not imported may use the byte tokenizer.
std::string naming_hint(const fs::path& model_folder) {
  if (os::is_there(model_folder / "tokenizer.model"))
    return "name the model's tokenizer.json: --tokenizer FILE. Triax does not read tokenizer.model: without another "
           "file, use transformers to generate (triax export hf)";
  if (os::is_there(model_folder / hf::kConfigFile)) return "name the model's tokenizer.json: --tokenizer FILE";
  return "name it: --tokenizer byte, or the path of a tokenizer.json";
}

} // namespace

config::LoadResult load_generating_run(const GeneratingSource& source, const std::vector<config::Override>& overrides,
                                       std::optional<int> world, plugin::FirstLoad first_load) {
  const fs::path base = train::run_folder_of(source.checkpoint);
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
  std::vector<std::int32_t> ends = hf::read_end_tokens(source.model_folder, source.vocab);
  if (!given.name.empty())
    return data::make_text_tokenizer(data::open_tokenizer(given), "--tokenizer " + given.name, std::move(ends));
  hf::ImportedTokenizer imported = hf::read_imported_tokenizer(source.model_folder);
  if (imported.tokenizer)
    return data::make_text_tokenizer(std::move(imported.tokenizer), imported.from, std::move(ends));
  const train::DataTokenizer of_data = train::find_data_tokenizer(source.manifest, source.checkpoint);
  if (!of_data.corpus.empty()) return data::open_text_tokenizer_of(of_data.corpus);
  const std::string looked = of_data.missing.empty() ? std::string() : text(", and {} does not exist", of_data.missing);
  throw Error(text("no tokenizer found: {} has neither tokenizer.json nor GPT-2's vocab.json and merges.txt{}",
                   source.model_folder, looked),
              {}, naming_hint(source.model_folder));
}

} // namespace triax::app
