// SPDX-License-Identifier: Apache-2.0
#include "hf/imported_tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/printable.hpp"
#include "data/tokenizer/json_location.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "hf/model_config.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& folder, const char* name) {
  std::error_code unreadable;
  return fs::exists(folder / name, unreadable);
}

/// config.json may have the type, the architecture, or both.
bool is_gpt2(const fs::path& folder) {
  if (!has_file(folder, kConfigFile)) return false;
  const ModelConfig config = read_model_config(folder);
  return config.model_type == "gpt2" || config.architectures == std::vector<std::string>{"GPT2LMHeadModel"};
}

/// The added token that ends a text of the model. Empty if there is none, or if it cannot be written in a shell.
std::string end_token(const data::Tokenizer& tokenizer, const fs::path& folder) {
  std::vector<std::int32_t> ends;
  try {
    ends = read_end_tokens(folder, tokenizer.vocab());
  } catch (const Error&) { // weights and tokenizers can be used without it
    return {};
  }
  for (const std::string& token : tokenizer.added_tokens())
    if (std::ranges::find(ends, *tokenizer.id_of(token)) != ends.end() && token.find('\'') == std::string::npos &&
        printable(token) == token)
      return token;
  return {};
}

} // namespace

ImportedTokenizer read_imported_tokenizer(const fs::path& folder) {
  const fs::path tokenizer = folder / "tokenizer.json", vocab = folder / "vocab.json";
  if (has_file(folder, "tokenizer.json")) return {data::read_tokenizer_json(tokenizer), tokenizer.string()};
  if (has_file(folder, "vocab.json") && has_file(folder, "merges.txt") && is_gpt2(folder))
    return {data::read_gpt2_files(vocab, folder / "merges.txt"), vocab.string()};
  return {};
}

std::string prepare_flags(const ImportedTokenizer& imported) {
  const fs::path folder = fs::path(imported.from).parent_path();
  const bool is_json = !imported.from.ends_with("vocab.json");
  std::string out = is_json ? "--tokenizer " + imported.from
                            : text("--tokenizer gpt2 --vocab {} --merges {}", imported.from, folder / "merges.txt");
  if (imported.tokenizer->id_of(data::kEndOfText)) return out + " --append-eod";
  const std::string end = end_token(*imported.tokenizer, folder);
  return end.empty() ? out : text("{} --append-eod --eod-token '{}'", out, end);
}

std::vector<std::int32_t> read_end_tokens(const fs::path& folder, std::int64_t vocab) {
  const char* const name = has_file(folder, "generation_config.json") ? "generation_config.json" : kConfigFile;
  if (!has_file(folder, name)) return {};
  const fs::path file = folder / name;
  const std::string restore = "restore it from the imported model";
  const nlohmann::json json = data::parse_json(file, data::read_whole(file, restore), restore);
  if (!json.is_object()) throw Error("is not a JSON object", file.string(), restore);
  if (!json.contains("eos_token_id") || json["eos_token_id"].is_null()) return {};
  nlohmann::json ids = json["eos_token_id"];
  if (!ids.is_array()) ids = nlohmann::json::array({ids});
  std::vector<std::int32_t> out;
  for (const nlohmann::json& id : ids) {
    // Compared as JSON: a number may be larger than any integer type.
    if (!id.is_number_integer() || id < 0 || id >= vocab)
      throw Error(text("eos_token_id must be a token id in [0, {}], or a list of them, got {}", vocab - 1,
                       shortened(id.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))),
                  file.string(), "write the id of the token that ends a text, or null");
    out.push_back(id.get<std::int32_t>());
  }
  return out;
}

} // namespace triax::hf
