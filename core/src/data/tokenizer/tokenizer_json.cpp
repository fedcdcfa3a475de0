// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/tokenizer_json.hpp"

#include <optional>
#include <unordered_map>

#include "data/tokenizer/json_location.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

using Ids = std::unordered_map<std::string, std::int32_t>;

constexpr const char* kSteps = "supported: ByteLevel, or a Sequence of Split and Digits that ends with ByteLevel";
constexpr const char* kNormalizers = "supported: null, NFC, and a Sequence of NFC";
constexpr const char* kByteLevel =
    "only byte-level tokenizers are supported, as of GPT-2, Llama 3, Qwen 2, Qwen 2.5, Qwen 3 and SmolLM; "
    "docs/models.md says what to do with others";
constexpr const char* kDamaged = "the file was damaged, or is not a tokenizer.json: restore it";
constexpr const char* kDamagedVocab = "the file was damaged, or is not GPT-2's vocab.json: restore it";

/// Enters the token at the index of its id.
void put_token(const JsonLocation& at, const std::string& token, std::int32_t id, BpeParts& parts, Ids& ids) {
  if (token.empty()) at.refuse("is an empty token");
  const auto index = static_cast<std::size_t>(id);
  if (index >= parts.tokens.size()) parts.tokens.resize(index + 1);
  if (!parts.tokens[index].empty()) {
    at.refuse(text("gives \"{}\" the id {}, which \"{}\" already has", token, id, parts.tokens[index]));
  }
  parts.tokens[index] = token;
  ids[token] = id;
}

Ids read_vocab(const JsonLocation& vocab, BpeParts& parts) {
  Ids ids;
  vocab.object();
  for (const auto& item : vocab.value().items()) {
    const JsonLocation token = vocab.at(item.key());
    put_token(vocab, item.key(), token.id(), parts, ids);
  }
  if (ids.empty()) vocab.refuse("is empty");
  return ids;
}

/// Calls `refuse` with the problem.
template <class Refuse>
Merge merge_of(const Ids& ids, const std::string& left, const std::string& right, Refuse&& refuse) {
  const auto id_of = [&](const std::string& token) {
    const auto found = ids.find(token);
    if (found == ids.end()) refuse(text("needs the token \"{}\", which the vocabulary lacks", token));
    return found->second;
  };
  return {id_of(left), id_of(right), id_of(left + right)};
}

/// "a b": two texts separated by one space.
bool split_merge(std::string_view line, std::string& left, std::string& right) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size()) return false;
  if (line.find(' ', space + 1) != std::string_view::npos) return false;
  left = line.substr(0, space);
  right = line.substr(space + 1);
  return true;
}

void read_merges(const JsonLocation& merges, const Ids& ids, BpeParts& parts) {
  merges.list();
  for (std::size_t i = 0; i < merges.value().size(); ++i) {
    const JsonLocation merge = merges.at(i);
    std::string left, right;
    const auto& value = merge.value();
    if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
      left = value[0].get<std::string>();
      right = value[1].get<std::string>();
    } else if (!value.is_string() || !split_merge(merge.string(), left, right)) {
      merge.refuse(text("is {}: it must be two tokens, [\"a\", \"b\"] or \"a b\"", merge.shown()));
    }
    parts.merges.push_back(merge_of(ids, left, right, [&](const std::string& problem) { merge.refuse(problem); }));
  }
}

Ids read_model(const JsonLocation& model, BpeParts& parts) {
  model.keys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  model.only("dropout", {"0.0", "0"}, "set it to null: the same text must give the same tokens");
  model.only("continuing_subword_prefix", {R"("")"}, kByteLevel);
  model.only("end_of_word_suffix", {R"("")"}, kByteLevel);
  // unk_token and fuse_unk apply to text without tokens, which does not exist: each byte has a token.
  parts.ignore_merges = model.boolean_or("ignore_merges", false);
  Ids ids = read_vocab(model.at("vocab"), parts);
  read_merges(model.at("merges"), ids, parts);
  return ids;
}

void read_added(const JsonLocation& added, const Ids& ids, BpeParts& parts) {
  Ids own;
  auto next = static_cast<std::int32_t>(ids.size());
  added.list();
  for (std::size_t i = 0; i < added.value().size(); ++i) {
    const JsonLocation token = added.at(i);
    token.keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      token.only(key, {"false"}, "only added tokens that match anywhere are supported");
    }
    AddedToken out;
    out.content = token.at("content").string();
    out.id = token.at("id").id();
    out.special = token.boolean_or("special", false);
    out.normalized = token.boolean_or("normalized", !out.special);
    if (out.content.empty()) token.refuse("has an empty content");
    const auto known = ids.find(out.content);
    if (known != ids.end() && known->second != out.id) {
      token.refuse(text("has the id {}, but \"{}\" has {} in model.vocab", out.id, out.content, known->second));
    }
    if (!own.emplace(out.content, out.id).second) token.refuse(text("repeats \"{}\"", out.content));
    if (known == ids.end()) {
      if (out.id != next) {
        token.refuse(
            text("has the id {}, but the next id is {}", out.id, next),
            "`tokenizers` numbers added tokens without gaps, whatever the file says; list them in their order");
      }
      ++next;
    }
    parts.added.push_back(std::move(out));
  }
}

Pattern pattern_of(const JsonLocation& at, std::string_view regex) {
  try {
    return Pattern(regex);
  } catch (const Error& error) {
    at.refuse("is not supported: " + error.message(), error.hint());
  }
}

void read_byte_level(const JsonLocation& step, BpeParts& parts) {
  step.keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  WordStep out;
  out.prefix_space = step.boolean_or("add_prefix_space", true);
  if (step.boolean_or("use_regex", true)) out.pattern.emplace(kGpt2Pattern);
  parts.steps.push_back(std::move(out));
}

void read_split(const JsonLocation& step, BpeParts& parts) {
  step.keys({"type", "pattern", "behavior", "invert"});
  const JsonLocation pattern = step.at("pattern");
  pattern.keys({"Regex"});
  const std::string& behavior = step.at("behavior").string();
  const bool invert = step.boolean_or("invert", false);
  const bool isolated = behavior == "Isolated" && !invert, matches = behavior == "Removed" && invert;
  if (!isolated && !matches) {
    step.refuse(text("has the behavior {} with invert {}", step.at("behavior").shown(), invert),
                "supported: Isolated with invert false, and Removed with invert true");
  }
  const JsonLocation regex = pattern.at("Regex");
  WordStep out;
  out.pattern.emplace(pattern_of(regex, regex.string()));
  out.drop_gaps = matches;
  parts.steps.push_back(std::move(out));
}

void read_digits(const JsonLocation& step, BpeParts& parts) {
  step.keys({"type", "individual_digits"});
  parts.steps.emplace_back();
  parts.steps.back().pattern.emplace(step.at("individual_digits").boolean() ? kDigit : kDigits);
}

void read_steps(const JsonLocation& pre, BpeParts& parts) {
  if (pre.value().is_null()) pre.refuse("is null", kSteps);
  const std::string& type = pre.at("type").string();
  if (type == "ByteLevel") return read_byte_level(pre, parts);
  if (type != "Sequence") pre.at("type").refuse(text("is \"{}\"", type), kSteps);
  pre.keys({"type", "pretokenizers"});
  const JsonLocation steps = pre.at("pretokenizers").list();
  const std::size_t count = steps.value().size();
  for (std::size_t i = 0; i < count; ++i) {
    const JsonLocation step = steps.at(i);
    const std::string& of = step.at("type").string();
    const bool last = i + 1 == count;
    if (last && of == "ByteLevel") {
      read_byte_level(step, parts);
    } else if (!last && of == "Split") {
      read_split(step, parts);
    } else if (!last && of == "Digits") {
      read_digits(step, parts);
    } else {
      step.at("type").refuse(text("is \"{}\" as step {} of {}", of, i + 1, count), kSteps);
    }
  }
  if (count == 0) steps.refuse("is empty", kSteps);
}

/// The first reason of why a file is not byte-level BPE, before those that follow from it: SentencePiece's files also
/// have other normalizers and steps.
void check_model_type(const JsonLocation& model) {
  const std::string& type = model.at("type").string();
  if (type != "BPE") model.at("type").refuse(text("is \"{}\": it must be \"BPE\"", type), kByteLevel);
  model.only("byte_fallback", {"false"}, kByteLevel);
}

/// Whether it is NFC, or a sequence of it.
bool read_nfc(const JsonLocation& normalizer) {
  const std::string& type = normalizer.at("type").string();
  if (type == "NFC") {
    normalizer.keys({"type"});
    return true;
  }
  if (type != "Sequence") normalizer.at("type").refuse(text("is \"{}\"", type), kNormalizers);
  normalizer.keys({"type", "normalizers"});
  const JsonLocation steps = normalizer.at("normalizers").list();
  bool out = false;
  for (std::size_t i = 0; i < steps.value().size(); ++i) out = read_nfc(steps.at(i)) || out;
  return out;
}

void read_others(const JsonLocation& root, BpeParts& parts) {
  root.keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
             "decoder", "model"});
  root.only("truncation", {}, "set it to null: documents are not truncated");
  root.only("padding", {}, "set it to null: documents are not padded");
  if (root.has("normalizer") && !root.at("normalizer").value().is_null()) parts.nfc = read_nfc(root.at("normalizer"));
  if (!root.has("decoder") || root.at("decoder").value().is_null()) return;
  const JsonLocation decoder = root.at("decoder");
  const std::string& type = decoder.at("type").string();
  if (type != "ByteLevel") decoder.at("type").refuse(text("is \"{}\": it must be \"ByteLevel\"", type), kByteLevel);
}

std::unique_ptr<Tokenizer> made(const std::filesystem::path& file, BpeParts parts, std::string json) {
  try {
    return make_bpe_tokenizer(std::move(parts), std::move(json));
  } catch (const Error& error) {
    throw Error(error.message(), file.string(), kByteLevel);
  }
}

} // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file) {
  return parse_tokenizer_json(read_whole(file, "make one with: triax data train-tokenizer"), file);
}

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string json, const std::filesystem::path& file) {
  const nlohmann::json content = parse_json(file, json, kDamaged);
  const JsonLocation root(file, content, kDamaged);
  root.object();
  BpeParts parts;
  check_model_type(root.at("model"));
  read_others(root, parts);
  const Ids ids = read_model(root.at("model"), parts);
  if (root.has("added_tokens")) read_added(root.at("added_tokens"), ids, parts);
  read_steps(root.at("pre_tokenizer"), parts);
  return made(file, std::move(parts), std::move(json));
}

std::unique_ptr<Tokenizer> read_gpt2_files(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  const nlohmann::json content = parse_json(vocab, read_whole(vocab, "name GPT-2's vocab.json"), kDamagedVocab);
  BpeParts parts;
  const Ids ids = read_vocab(JsonLocation(vocab, content, kDamagedVocab), parts);
  const std::string of_vocab = text("use the merges.txt that belongs to {}", vocab);
  const std::string lines = read_whole(merges, of_vocab);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t found = lines.find('\n', begin), end = found == std::string::npos ? lines.size() : found;
    std::string_view line = std::string_view(lines).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    const auto refuse = [&](const std::string& problem) {
      throw Error(text("line {} {}", number, problem), merges.string(), of_vocab);
    };
    std::string left, right;
    if (!split_merge(line, left, right)) refuse("is not two tokens with one space between them");
    parts.merges.push_back(merge_of(ids, left, right, refuse));
  }
  const auto end_of_text = ids.find(kEndOfText);
  if (end_of_text != ids.end()) parts.added.push_back({kEndOfText, end_of_text->second, true, false});
  parts.steps.emplace_back();
  parts.steps.back().pattern.emplace(kGpt2Pattern);
  std::string json = write_tokenizer_json(parts);
  return made(vocab, std::move(parts), std::move(json));
}

std::string write_tokenizer_json(const BpeParts& parts) {
  using Json = nlohmann::ordered_json;
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  Json vocab = Json::object(), merges = Json::array(), added = Json::array();
  auto& members = vocab.get_ref<Json::object_t&>(); // the member function would search all members
  for (std::size_t id = 0; id < parts.tokens.size(); ++id) {
    if (!parts.tokens[id].empty()) members.emplace_back(parts.tokens[id], id);
  }
  const auto token = [&](std::int32_t id) { return parts.tokens[static_cast<std::size_t>(id)]; };
  for (const Merge& merge : parts.merges) merges.push_back(token(merge.left) + " " + token(merge.right));
  for (const AddedToken& of : parts.added) {
    added.push_back({{"id", of.id},
                     {"content", of.content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", of.normalized},
                     {"special", of.special}});
  }
  const Json out = {{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", std::move(added)},
                    {"normalizer", nullptr},
                    {"pre_tokenizer", byte_level},
                    {"post_processor", nullptr},
                    {"decoder", byte_level},
                    {"model",
                     {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false},
                      {"vocab", std::move(vocab)},
                      {"merges", std::move(merges)}}}};
  return out.dump(1) + "\n";
}

} // namespace triax::data
