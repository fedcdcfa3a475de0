// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/tokenizer.hpp"

#include <array>

#include "data/tokenizer/utf8.hpp"
#include "data/tokenizer_choice.hpp"

namespace triax::data {

namespace {

class ByteEncoder final : public Encoder {
 public:
  SplitProgress encode(const TextPart& part, std::vector<std::int32_t>& ids) override {
    const std::size_t before = ids.size();
    ids.resize(before + part.text.size());
    for (std::size_t i = 0; i < part.text.size(); ++i) ids[before + i] = static_cast<unsigned char>(part.text[i]);
    return {part.text.size(), false};
  }
  PartCut cut(const TextPart& part) override { return {{part.text.size(), false}, true}; }
};

class Bytes final : public Tokenizer {
 public:
  std::string kind() const override { return std::string(ByteTokenizer::kName); }
  std::int64_t vocab() const override { return ByteTokenizer::kVocab; }
  bool takes_any_bytes() const override { return true; }
  std::optional<std::int32_t> id_of(std::string_view) const override { return std::nullopt; }
  std::vector<std::string> added_tokens() const override { return {}; }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<ByteEncoder>(); }
  std::string_view bytes_of(std::int32_t id) const override {
    static constexpr auto kBytes = [] {
      std::array<char, 256> bytes{};
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
      return bytes;
    }();
    if (id == ByteTokenizer::kEndOfDocument) return {};
    if (id < 0 || id >= ByteTokenizer::kVocab) {
      throw Error(text("invalid token id {}: token ids are 0 to {}", id, ByteTokenizer::kVocab - 1));
    }
    return {kBytes.data() + id, 1};
  }
  std::string digest() const override { return "byte"; }
  const std::string& json() const override { return none_; }

 private:
  std::string none_;
};

} // namespace

Error word_too_long() {
  return Error(text("contains a word of more than {} bytes", kMaxWord), {},
               "split it; or use --tokenizer byte, which does not use words");
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  if (!takes_any_bytes()) {
    if (const auto at = ill_formed_at(text))
      throw Error(triax::text("byte {} of the text is not UTF-8", *at), {},
                  "convert it to UTF-8, for example with iconv");
  }
  std::vector<std::int32_t> ids;
  encoder()->encode({text}, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string out;
  for (const std::int32_t id : ids) out += bytes_of(id);
  return out;
}

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<Bytes>();
}

} // namespace triax::data
