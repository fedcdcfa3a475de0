// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer_choice.hpp"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/printable.hpp"
#include "data/dataset.hpp"
#include "data/tokenizer/byte_symbols.hpp"
#include "data/tokenizer/json_location.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

nlohmann::json parse(const std::filesystem::path& file, const std::string& hint) {
  if (const std::string problem = os::why_not_a_file(file); !problem.empty())
    throw Error(problem + "; it names the tokenizer and the size of its vocabulary", file.string(),
                os::permission_hint(file).empty() ? hint : os::permission_hint(file));
  return parse_json(file, read_whole(file, hint), hint);
}

} // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerChoice& choice) {
  const bool gpt2 = choice.name == "gpt2";
  if (gpt2 != !choice.vocab.empty() || gpt2 != !choice.merges.empty()) {
    throw Error("--vocab and --merges are the two files of --tokenizer gpt2", "--tokenizer " + choice.name,
                "give --tokenizer gpt2 --vocab vocab.json --merges merges.txt, or --tokenizer tokenizer.json");
  }
  if (gpt2) return read_gpt2_files(choice.vocab, choice.merges);
  if (choice.name == ByteTokenizer::kName) return make_byte_tokenizer();
  std::error_code ignored;
  if (choice.name.ends_with(".json") || std::filesystem::exists(choice.name, ignored))
    return read_tokenizer_json(choice.name);
  throw Error(text("--tokenizer must be byte, gpt2 or the path of a tokenizer.json, got {}", choice.name));
}

namespace {

std::unique_ptr<Tokenizer> tokenizer_named(const TokenizerInfo& info, const std::filesystem::path& prefix) {
  if (info.kind == ByteTokenizer::kName) return make_byte_tokenizer();
  if (info.kind != "bpe") {
    throw Error(text("names an unknown tokenizer \"{}\"", shortened(info.kind)), beside(prefix, ".json").string(),
                "known: byte, bpe");
  }
  std::unique_ptr<Tokenizer> out = read_tokenizer_json(tokenizer_file(prefix));
  if (out->digest() != info.digest) {
    throw Error(text("is not the tokenizer that {} was made with: its digest is {}, not {}", beside(prefix, ".bin"),
                     out->digest(), info.digest),
                tokenizer_file(prefix).string(), "restore the file that was written with the dataset");
  }
  return out;
}

} // namespace

std::unique_ptr<Tokenizer> open_tokenizer_of(const std::filesystem::path& prefix) {
  const TokenizerInfo info = read_tokenizer_info(prefix);
  std::unique_ptr<Tokenizer> out = tokenizer_named(info, prefix);
  if (info.end && *info.end >= out->vocab())
    throw Error(text("key \"end_of_document\" is {}, but the ids of its tokenizer \"{}\" are 0 to {}", *info.end,
                     info.kind, out->vocab() - 1),
                beside(prefix, ".json").string(), how_to_prepare(prefix));
  return out;
}

std::filesystem::path beside(const std::filesystem::path& prefix, std::string_view ending) {
  std::filesystem::path out = prefix;
  out += ending;
  return out;
}

std::string how_to_prepare(const std::filesystem::path& prefix, const std::filesystem::path& checkpoint) {
  const auto is_there = [](const std::filesystem::path& file) {
    std::error_code ignored;
    return std::filesystem::exists(file, ignored);
  };
  const std::filesystem::path imported = checkpoint / kImportedFolder / "tokenizer.json";
  const bool is_imported = !checkpoint.empty() && is_there(imported);
  for (const char* ending : {".bin", ".idx", ".json"}) {
    if (!is_there(beside(prefix, ending))) continue;
    return text( // these files may be valid, for any tokenizer
        "prepare the dataset again with its tokenizer: triax data prepare --input FILE... --output {} --tokenizer {} "
        "--force",
        prefix, is_imported ? imported.string() : "NAME");
  }
  return text("prepare it with: triax data prepare --input FILE... --output {} --tokenizer {}", prefix,
              is_imported          ? imported.string()
              : checkpoint.empty() ? "byte"
                                   : "NAME");
}

std::filesystem::path tokenizer_file(const std::filesystem::path& prefix) {
  return beside(prefix, "-tokenizer.json");
}

std::string exported_json(const Tokenizer& tokenizer) {
  if (!tokenizer.json().empty()) return tokenizer.json();
  TRIAX_REQUIRE(tokenizer.kind() == ByteTokenizer::kName, "a tokenizer of the kind {} has no tokenizer.json",
                tokenizer.kind());
  BpeParts parts;
  for (int byte = 0; byte < ByteTokenizer::kEndOfDocument; ++byte)
    parts.tokens.push_back(to_symbols(std::string(1, static_cast<char>(byte))));
  parts.tokens.emplace_back(kEndOfText);
  parts.added.push_back({.content = kEndOfText, .id = ByteTokenizer::kEndOfDocument, .special = true});
  return write_tokenizer_json(parts);
}

std::string dataset_info(const Tokenizer& tokenizer, std::optional<std::int32_t> end) {
  nlohmann::ordered_json out;
  out["tokenizer"] = tokenizer.kind();
  out["vocab"] = tokenizer.vocab();
  if (end) out["end_of_document"] = *end;
  if (!tokenizer.json().empty()) out["digest"] = tokenizer.digest();
  return out.dump() + "\n";
}

bool names_tokenizer(const std::filesystem::path& prefix) {
  try {
    const nlohmann::json info = parse(beside(prefix, ".json"), {});
    return info.is_object() && info.contains("tokenizer");
  } catch (const Error&) { // read_tokenizer_info() reports it
    return true;
  }
}

std::optional<TokenizerInfo> find_tokenizer_info(const std::filesystem::path& prefix) {
  std::error_code unreadable;
  if (!std::filesystem::exists(beside(prefix, ".json"), unreadable)) return std::nullopt;
  try {
    return read_tokenizer_info(prefix);
  } catch (const Error&) { // reported where the tokenizer is needed
    return std::nullopt;
  }
}

TokenizerInfo read_tokenizer_info(const std::filesystem::path& prefix) {
  const std::filesystem::path file = beside(prefix, ".json");
  const std::string hint = how_to_prepare(prefix) +
                           "\n"
                           "  or set model.vocab, for token files of another program";
  const nlohmann::json info = parse(file, hint);
  const auto fail = [&](const char* key, const std::string& wanted) {
    const bool there = info.is_object() && info.contains(key);
    const auto replace = nlohmann::json::error_handler_t::replace;
    throw Error(
        there ? text("key \"{}\" is {}; it must be {}", key, shortened(info[key].dump(-1, ' ', false, replace)), wanted)
              : text("has no key \"{}\": {}", key, wanted),
        file.string(), hint);
  };
  TokenizerInfo out;
  if (!info.is_object() || !info.contains("tokenizer") || !info["tokenizer"].is_string()) {
    fail("tokenizer", "the name of a tokenizer");
  }
  out.kind = info["tokenizer"].get<std::string>();
  if (!info.contains("vocab") || !info["vocab"].is_number_integer() || info["vocab"] < 1 ||
      info["vocab"] > std::numeric_limits<std::int32_t>::max()) {
    fail("vocab", "an integer in [1, 2147483647]");
  }
  out.vocab = info["vocab"].get<std::int64_t>();
  if (info.contains("end_of_document")) {
    const nlohmann::json& end = info["end_of_document"];
    if (!end.is_number_integer() || end < 0 || end >= out.vocab)
      fail("end_of_document", text("an integer in [0, {}]", out.vocab - 1));
    out.end = end.get<std::int32_t>();
  }
  out.digest = out.kind; // its name identifies it completely
  if (info.contains("digest")) {
    if (!info["digest"].is_string()) fail("digest", "a text");
    out.digest = info["digest"].get<std::string>();
  }
  return out;
}

} // namespace triax::data
