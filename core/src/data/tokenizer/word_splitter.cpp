// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/word_splitter.hpp"

#include <algorithm>
#include <array>

namespace triax::data {

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr std::size_t kNearEnd = 4096; // bytes before the end in which a cut before a space is searched

/// The patterns of GPT-2, GPT-4 (cl100k, also as used by Llama 3 and Qwen 2) and GPT-4o (o200k). For all of them, a
/// match never continues with a space after a printable ASCII character, and a match that ends in such a character does
/// not depend on the text after it.
const std::array<std::string_view, 6> kCutBeforeSpaces = {
    kGpt2Pattern,
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

bool known_to_cut(const WordStep& step) {
  return step.pattern && std::ranges::find(kCutBeforeSpaces, step.pattern->text()) != kCutBeforeSpaces.end();
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

WordRules::WordRules(std::vector<AddedToken> tokens, std::vector<WordStep> steps) : steps_(std::move(steps)) {
  const bool one_pattern = std::ranges::count_if(steps_, [](const WordStep& s) { return s.pattern.has_value(); }) == 1;
  cut_before_spaces_ =
      one_pattern && known_to_cut(steps_.front()) && std::ranges::none_of(tokens, [](const AddedToken& token) {
        return token.content.find(' ', 1) != std::string::npos;
      });
  for (const bool normalized : {false, true}) {
    std::vector<AddedToken> level;
    std::ranges::copy_if(tokens, std::back_inserter(level),
                         [&](const AddedToken& token) { return token.normalized == normalized; });
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
  return added(0, part, sink);
}

PartCut WordSplitter::cut(const TextPart& part) {
  if (rules_->cut_before_spaces_) {
    if (const std::size_t at = last_space(part.text)) return {{at, false}, true};
  }
  NoSink none;
  return {split(part, none), false};
}

SplitProgress WordSplitter::added(std::size_t level, const TextPart& part, WordSink& sink) {
  if (level == rules_->added_.size()) return step(0, part, sink);
  std::size_t from = 0;
  bool begins = part.begins;
  for (;;) {
    const FoundToken found = rules_->added_[level].find(part.text, from, part.closed);
    const bool token = found.kind == FoundToken::Kind::token;
    const std::size_t end = found.kind == FoundToken::Kind::none ? part.text.size() : found.begin;
    const TextPart plain{part.text.substr(from, end - from), begins, token || part.closed};
    const SplitProgress done = added(level + 1, plain, sink);
    if (!token) return {from + done.bytes, done.begins};
    sink.added(found.id);
    from = found.end;
    begins = true;
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
