#include "data/tokenizer.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "data/dataset.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

using nlohmann::json;

json parse(const std::filesystem::path& file, const std::string& hint) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw Error("there is no such file; it names the tokenizer and the size of its vocabulary", file.string(), hint);
  }
  std::ifstream in(file);
  if (!in || !std::filesystem::is_regular_file(file, ignored)) throw Error("cannot be read", file.string(), hint);
  try {
    return json::parse(in);
  } catch (const json::parse_error& error) { // its text speaks of the library
    throw Error(text("is not valid JSON: byte {} is where it goes wrong", error.byte), file.string(), hint);
  } catch (const json::exception&) {
    throw Error("is not valid JSON: a number in it is out of range", file.string(), hint);
  }
}

} // namespace

std::vector<std::string> known_tokenizers() {
  return {std::string(ByteTokenizer::kName)};
}

std::filesystem::path beside(const std::filesystem::path& prefix, std::string_view ending) {
  std::filesystem::path out = prefix;
  out += ending;
  return out;
}

std::string how_to_prepare(const std::filesystem::path& prefix) {
  return text("make it with: triax data prepare --input FILE... --output {} --tokenizer byte", prefix);
}

std::string tokenizer_json() {
  nlohmann::ordered_json out;
  out["tokenizer"] = ByteTokenizer::kName;
  out["vocab"] = ByteTokenizer::kVocab;
  out["end_of_document"] = ByteTokenizer::kEndOfDocument;
  return out.dump() + "\n";
}

TokenizerInfo read_tokenizer_info(const std::filesystem::path& prefix) {
  const std::filesystem::path file = beside(prefix, ".json");
  std::error_code ignored;
  const bool replaces = std::filesystem::exists(file, ignored);
  const std::string hint = how_to_prepare(prefix) + (replaces ? " --force" : "") +
                           "\n  or give model.vocab, for token files that were made elsewhere";
  const json info = parse(file, hint);
  const auto fail = [&](const char* key, const char* wanted) {
    const bool there = info.is_object() && info.contains(key);
    const auto replace = json::error_handler_t::replace;
    throw Error(there ? text("key \"{}\" is {}; it must be {}", key, info[key].dump(-1, ' ', false, replace), wanted)
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
    fail("vocab", "a whole number from 1 to 2147483647");
  }
  out.vocab = info["vocab"].get<std::int64_t>();
  return out;
}

} // namespace triax::data
