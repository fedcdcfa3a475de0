// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/word_splitter.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace triax::data {

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr std::size_t kNearEnd = 4096; // bytes before the end in which a cut before a space is searched

/// The patterns of GPT-2, SmolLM, GPT-4 (cl100k, also as used by Llama 3 and Qwen 2) and GPT-4o (o200k). For all of
/// them, a match never continues with a space after a printable ASCII character, and a match that ends in such a
/// character does not depend on the text after it.
const std::array<std::string_view, 8> kCutBeforeSpaces = {
    kGpt2Pattern,
    kDigit,
    kDigits,
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

/// Also a step without a pattern: it does not cut.
bool known_to_cut(const WordStep& step) {
  return !step.pattern || std::ranges::find(kCutBeforeSpaces, step.pattern->text()) != kCutBeforeSpaces.end();
}

/// Position of the last space after a printable ASCII character near the end of `text`, or 0.
std::size_t last_space(std::string_view text) {
  const std::size_t stop = text.size() > kNearEnd ? text.size() - kNearEnd : 1;
  for (std::size_t at = text.size(); at-- > stop;) {
    if (text[at] == ' ' && text[at - 1] > ' ' && text[at - 1] < 0x7F) return at;
  }
  return 0;
}

class NoSink final : public WordSink {
 public:
  void word(std::string_view) override {}
  void added(std::int32_t) override {}
};

} // namespace

WordRules::WordRules(std::vector<AddedToken> tokens, std::vector<WordStep> steps, bool nfc) : steps_(std::move(steps)) {
  if (nfc) nfc_.emplace();
  const auto has_pattern = [](const WordStep& step) { return step.pattern.has_value(); };
  const auto has_space = [](const AddedToken& token) { return token.content.find(' ', 1) != std::string::npos; };
  cut_before_spaces_ = std::ranges::any_of(steps_, has_pattern) && std::ranges::all_of(steps_, known_to_cut) &&
                       std::ranges::none_of(tokens, has_space);
  for (const bool normalized : {false, true}) {
    if (normalized) nfc_level_ = added_.size();
    std::vector<AddedToken> level;
    std::ranges::copy_if(tokens, std::back_inserter(level),
                         [&](const AddedToken& token) { return token.normalized == normalized; });
    if (normalized && nfc_) {
      for (AddedToken& token : level) token.content = nfc_->normalized(token.content);
      // Several can have the same NFC: the first of them is found, special ones before the others.
      std::stable_partition(level.begin(), level.end(), std::mem_fn(&AddedToken::special));
    }
    if (!level.empty()) added_.emplace_back(std::move(level));
  }
}

WordSplitter::WordSplitter(const WordRules& rules) : rules_(&rules) {
  for (const WordStep& step : rules.steps_) {
    states_.emplace_back();
    if (step.pattern) states_.back().search.emplace(*step.pattern);
  }
}

SplitProgress WordSplitter::split(const TextPart& part, WordSink& sink) {
  return level(0, part, sink);
}

PartCut WordSplitter::cut(const TextPart& part) {
  if (rules_->cut_before_spaces_) {
    if (const std::size_t at = last_space(part.text)) return {{at, false}, true};
  }
  NoSink none;
  return {split(part, none), false};
}

SplitProgress WordSplitter::level(std::size_t level, const TextPart& part, WordSink& sink) {
  if (rules_->nfc_ && level == rules_->nfc_level_) return normalized(part, sink);
  return added(level, part, sink);
}

SplitProgress WordSplitter::normalized(const TextPart& part, WordSink& sink) {
  const Nfc& nfc = *rules_->nfc_;
  const std::string_view text = part.text.substr(0, part.closed ? part.text.size() : nfc.settled(part.text));
  if (text.empty()) return {0, part.begins, part.skip};
  if (part.skip == 0 && nfc.is_normal(text)) return added(rules_->nfc_level_, {text, part.begins, part.closed}, sink);
  nfc.normalize(text, nfc_text_);
  const TextPart rest{nfc_text_.text().substr(part.skip), part.begins, part.closed};
  const SplitProgress done = added(rules_->nfc_level_, rest, sink);
  const NfcText::Place place = nfc_text_.place_of(part.skip + done.bytes);
  return {place.byte, done.begins, place.skip};
}

SplitProgress WordSplitter::added(std::size_t level, const TextPart& part, WordSink& sink) {
  if (level == rules_->added_.size()) return step(0, part, sink);
  std::size_t from = 0, skip = part.skip;
  bool begins = part.begins;
  for (;;) {
    const FoundToken found = rules_->added_[level].find(part.text, from, part.closed);
    const bool token = found.kind == FoundToken::Kind::token;
    const std::size_t end = found.kind == FoundToken::Kind::none ? part.text.size() : found.begin;
    const TextPart plain{part.text.substr(from, end - from), begins, token || part.closed, skip};
    const SplitProgress done = this->level(level + 1, plain, sink);
    if (!token) return {from + done.bytes, done.begins, done.skip};
    sink.added(found.id);
    from = found.end;
    begins = true;
    skip = 0;
  }
}

SplitProgress WordSplitter::step(std::size_t number, const TextPart& part, WordSink& sink) {
  if (part.text.empty()) return {0, part.begins};
  if (number == states_.size()) {
    if (!part.closed) return {0, part.begins};
    sink.word(part.text);
    return {part.text.size(), false};
  }
  if (!rules_->steps_[number].prefix_space || !part.begins || part.text.front() == ' ') {
    const std::size_t done = pieces(number, part.text, part.closed, sink);
    return {done, part.begins && done == 0};
  }
  std::string& prefixed = states_[number].prefixed;
  prefixed.assign(1, ' ').append(part.text);
  const std::size_t done = pieces(number, prefixed, part.closed, sink);
  // If only the added space was cut, no byte of the part is done, but its beginning is.
  return done == 0 ? SplitProgress{0, true} : SplitProgress{done - 1, false};
}

std::size_t WordSplitter::pieces(std::size_t number, std::string_view text, bool closed, WordSink& sink) {
  std::optional<Search>& search = states_[number].search;
  if (!search) return step(number + 1, {text, true, closed}, sink).bytes;
  const bool keep_gaps = !rules_->steps_[number].drop_gaps;
  std::size_t from = 0;
  while (search->next(text, from, closed)) {
    const std::size_t begin = search->begin(), end = search->end();
    if (keep_gaps && begin > from) step(number + 1, {text.substr(from, begin - from)}, sink);
    step(number + 1, {text.substr(begin, end - begin)}, sink);
    from = end;
  }
  if (!closed) return from;
  if (keep_gaps && from < text.size()) step(number + 1, {text.substr(from)}, sink);
  return text.size();
}

} // namespace triax::data
