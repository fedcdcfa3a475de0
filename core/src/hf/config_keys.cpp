// SPDX-License-Identifier: Apache-2.0
#include "hf/config_keys.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/printable.hpp"

namespace triax::hf {

namespace {

/// Keys of every model of transformers that do not change what its layers compute: what it is called, ids of tokens,
/// what calls return.
constexpr std::array kCommonKeys = {"_name_or_path",
                                    "_attn_implementation_autoset",
                                    "_num_labels",
                                    "bos_token_id",
                                    "chunk_size_feed_forward",
                                    "decoder_start_token_id",
                                    "dtype",
                                    "eos_token_id",
                                    "finetuning_task",
                                    "id2label",
                                    "label2id",
                                    "num_labels",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "pad_token_id",
                                    "prefix",
                                    "problem_type",
                                    "return_dict",
                                    "sep_token_id",
                                    "task_specific_params",
                                    "tokenizer_class",
                                    "torch_dtype",
                                    "torchscript",
                                    "transformers\\.js_config",
                                    "transformers_version",
                                    "unk_token_id",
                                    "unsloth_fixed", // notes of a program that publishes models again
                                    "unsloth_version",
                                    "use_cache"};

/// Parameters of generating, which early versions of transformers wrote to config.json.
constexpr std::array kGenerationKeys = {"bad_words_ids",
                                        "begin_suppress_tokens",
                                        "diversity_penalty",
                                        "do_sample",
                                        "early_stopping",
                                        "encoder_no_repeat_ngram_size",
                                        "exponential_decay_length_penalty",
                                        "forced_bos_token_id",
                                        "forced_eos_token_id",
                                        "length_penalty",
                                        "max_length",
                                        "min_length",
                                        "no_repeat_ngram_size",
                                        "num_beam_groups",
                                        "num_beams",
                                        "num_return_sequences",
                                        "output_scores",
                                        "remove_invalid_values",
                                        "repetition_penalty",
                                        "return_dict_in_generate",
                                        "suppress_tokens",
                                        "temperature",
                                        "top_k",
                                        "top_p",
                                        "typical_p"};

bool is_listed(const std::string& key, const auto& list) {
  return std::ranges::any_of(list, [&](const auto& each) { return key == each; });
}

/// As the file has it: "a.b", whether "b" is in an object or not.
std::string unescaped(const std::string& key) {
  std::string out;
  for (std::size_t at = 0; at < key.size(); ++at) out += key[key[at] == '\\' && at + 1 < key.size() ? ++at : at];
  return out;
}

/// The ends of the names of the objects that have the key, outermost first, and of the key.
std::vector<std::size_t> name_ends(const std::string& key) {
  std::vector<std::size_t> out;
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (key[at] == '\\') {
      ++at;
    } else if (key[at] == '.') {
      out.push_back(at);
    }
  }
  out.push_back(key.size());
  return out;
}

} // namespace

std::string escaped_key(const std::string& key) {
  std::string out;
  for (const char c : key) {
    if (c == '.' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string shown_key(const std::string& key) {
  return shortened(printable(unescaped(key)));
}

std::string outer_key(const std::string& key) {
  return key.substr(0, name_ends(key).front());
}

bool is_named(const std::string& key, const std::string& name) {
  return std::ranges::any_of(name_ends(key), [&](std::size_t end) { return unescaped(key.substr(0, end)) == name; });
}

bool asks_for_nothing(const std::string& key, const std::string& json) {
  if (key == kCausalKey) return json == "null" || json == "true";
  return json == "null" || json == "false" || json == "[]" || json == "{}";
}

bool is_ignored(const std::string& key, const HfArchitecture& architecture) {
  for (const std::string& name : {key, outer_key(key)})
    if (is_listed(name, kCommonKeys) || is_listed(name, kGenerationKeys) || is_listed(name, architecture.ignored_keys))
      return true;
  return false;
}

} // namespace triax::hf
