// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer_difference.hpp"

#include "base/printable.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer_choice.hpp"
#include "triax/text.hpp"

namespace triax::data {

namespace {

/// The digest of the tokenizer.json of the byte tokenizer.
std::string byte_json_digest() {
  return parse_tokenizer_json(exported_json(*make_byte_tokenizer()), "tokenizer.json")->digest();
}

std::string description(const TokenizerInfo& info) {
  return text("{} of {} ids ({})", shortened(info.kind), info.vocab, shortened(info.digest));
}

} // namespace

TokenizerInfo info_of(const Tokenizer& tokenizer) {
  return {tokenizer.kind(), tokenizer.vocab(), tokenizer.digest()};
}

bool gives_same_ids(const TokenizerInfo& a, const TokenizerInfo& b) {
  if (a.digest == b.digest) return true;
  const bool is_byte = a.kind == ByteTokenizer::kName;
  if (is_byte == (b.kind == ByteTokenizer::kName)) return false;
  return (is_byte ? b : a).digest == byte_json_digest();
}

std::string different_tokenizers(const std::string& first, const TokenizerInfo& a, const std::string& second,
                                 const TokenizerInfo& b) {
  return text("{} and {} have different tokenizers: {}, and {}", first, second, description(a), description(b));
}

} // namespace triax::data
