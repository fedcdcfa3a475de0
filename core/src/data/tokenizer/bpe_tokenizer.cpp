// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/bpe_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/digest.hpp"
#include "data/tokenizer/byte_symbols.hpp"
#include "data/tokenizer/word_cache.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

std::string digest_of(const BpeParts& parts) {
  Digest out;
  for (const std::string& token : parts.tokens) out.add(token);
  out.add(static_cast<std::int64_t>(parts.tokens.size()));
  for (const Merge& merge : parts.merges) {
    for (const std::int32_t id : {merge.left, merge.right, merge.result}) out.add(std::int64_t{id});
  }
  out.add(static_cast<std::int64_t>(parts.merges.size()));
  // Without NFC, `normalized` matters only if the added tokens differ in it.
  const bool levels = parts.nfc || std::ranges::any_of(parts.added, [&](const AddedToken& token) {
                        return token.normalized != parts.added.front().normalized;
                      });
  for (const AddedToken& token : parts.added) {
    out.add(token.content);
    out.add(std::int64_t{token.id} * 2 + (levels && token.normalized ? 1 : 0));
  }
  for (const WordStep& step : parts.steps) {
    if (!step.pattern && !step.prefix_space) continue; // has no effect
    out.add(step.pattern ? step.pattern->text() : "");
    out.add(std::int64_t{step.drop_gaps} * 2 + (step.prefix_space ? 1 : 0));
  }
  out.add(std::int64_t{parts.ignore_merges});
  if (parts.nfc) out.add("NFC"); // otherwise the digest is that of earlier versions
  return out.text();
}

class Bpe final : public Tokenizer {
 public:
  Bpe(BpeParts parts, std::string json)
      : digest_(digest_of(parts)),
        json_(std::move(json)),
        merges_(parts.merges),
        rules_(parts.added, std::move(parts.steps), parts.nfc) {
    const std::vector<std::int32_t> of_bytes = byte_ids(parts.tokens);
    for (std::size_t byte = 0; byte < of_bytes.size(); ++byte) {
      if (of_bytes[byte] < 0)
        throw Error(text("the byte {} ({}) has no token", byte, to_symbols(std::string(1, static_cast<char>(byte)))));
      byte_ids_[byte] = of_bytes[byte];
    }
    there_.reserve(parts.tokens.size());
    bytes_.reserve(parts.tokens.size());
    for (std::size_t id = 0; id < parts.tokens.size(); ++id) {
      const std::string& token = parts.tokens[id];
      there_.push_back(!token.empty());
      if (parts.ignore_merges && !token.empty())
        whole_[from_symbols(token).value_or("")] = static_cast<std::int32_t>(id);
      bytes_.push_back(from_symbols(token).value_or(token));
    }
    whole_.erase("");
    for (AddedToken& token : parts.added) {
      const auto id = static_cast<std::size_t>(token.id);
      if (id >= bytes_.size()) bytes_.resize(id + 1), there_.resize(id + 1);
      bytes_[id] = token.content;
      there_[id] = true;
      added_.emplace(std::move(token.content), token.id);
    }
  }

  std::string kind() const override { return "bpe"; }
  std::int64_t vocab() const override { return static_cast<std::int64_t>(bytes_.size()); }
  bool takes_any_bytes() const override { return false; }
  std::optional<std::int32_t> id_of(std::string_view added_token) const override {
    const auto found = added_.find(std::string(added_token));
    return found == added_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> added_tokens() const override {
    std::vector<std::pair<std::int32_t, std::string>> by_id;
    by_id.reserve(added_.size());
    for (const auto& [content, id] : added_) by_id.emplace_back(id, content);
    std::ranges::sort(by_id);
    std::vector<std::string> out;
    out.reserve(by_id.size());
    for (auto& [id, content] : by_id) out.push_back(std::move(content));
    return out;
  }
  std::unique_ptr<Encoder> encoder() const override;
  std::string_view bytes_of(std::int32_t id) const override {
    if (id < 0 || id >= vocab() || !there_[static_cast<std::size_t>(id)]) {
      throw Error(text("invalid token id {}: token ids are 0 to {}{}", id, vocab() - 1,
                       id >= 0 && id < vocab() ? ", except for some" : ""));
    }
    return bytes_[static_cast<std::size_t>(id)];
  }
  std::string digest() const override { return digest_; }
  const std::string& json() const override { return json_; }

 private:
  friend class BpeEncoder;
  std::string digest_, json_;
  MergeTable merges_;
  WordRules rules_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<std::string> bytes_; // by id
  std::vector<bool> there_;
  std::unordered_map<std::string, std::int32_t> whole_, added_; // whole_: words that are not merged
};

class BpeEncoder final : public Encoder, private WordSink {
 public:
  explicit BpeEncoder(const Bpe& of) : of_(&of), splitter_(of.rules_), merger_(of.merges_) {}

  SplitProgress encode(const TextPart& part, std::vector<std::int32_t>& ids) override {
    out_ = &ids;
    return splitter_.split(part, *this);
  }
  PartCut cut(const TextPart& part) override { return splitter_.cut(part); }

 private:
  void word(std::string_view text) override {
    std::size_t count = 0;
    if (const std::int32_t* known = cache_.find(text, count)) {
      out_->insert(out_->end(), known, known + count);
      return;
    }
    if (text.size() > kMaxWord) throw word_too_long();
    merged(text);
    out_->insert(out_->end(), ids_.begin(), ids_.end());
    cache_.put(text, ids_);
  }
  void added(std::int32_t id) override { out_->push_back(id); }

  void merged(std::string_view text) {
    ids_.clear();
    if (!of_->whole_.empty()) {
      const auto found = of_->whole_.find(std::string(text));
      if (found != of_->whole_.end()) return ids_.push_back(found->second);
    }
    for (const char byte : text) ids_.push_back(of_->byte_ids_[static_cast<unsigned char>(byte)]);
    merger_.merge(ids_);
  }

  const Bpe* of_;
  WordSplitter splitter_;
  Merger merger_;
  WordCache cache_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t>* out_ = nullptr;
};

std::unique_ptr<Encoder> Bpe::encoder() const {
  return std::make_unique<BpeEncoder>(*this);
}

} // namespace

std::vector<std::int32_t> byte_ids(const std::vector<std::string>& tokens) {
  std::vector<std::int32_t> out(256, -1);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::optional<std::string> bytes = from_symbols(tokens[id]);
    if (bytes && bytes->size() == 1) out[static_cast<unsigned char>(bytes->front())] = static_cast<std::int32_t>(id);
  }
  return out;
}

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts, std::string json) {
  return std::make_unique<Bpe>(std::move(parts), std::move(json));
}

} // namespace triax::data
