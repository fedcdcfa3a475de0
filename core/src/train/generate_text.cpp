// SPDX-License-Identifier: Apache-2.0
#include "train/generate_text.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "data/text_stream.hpp"
#include "executor/executor.hpp"
#include "train/nonfinite_logit.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

using Tokens = std::vector<std::int32_t>;

/// In place of a chosen token: larger than any.
constexpr std::int32_t kNotFinite = std::numeric_limits<std::int32_t>::max();

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// An id that the tokenizer does not use stands for no text.
std::string_view bytes_of(const data::Tokenizer& tokenizer, std::int32_t token) {
  try {
    return tokenizer.bytes_of(token);
  } catch (const Error&) {
    return {};
  }
}

class TextGeneration {
 public:
  TextGeneration(TextRank& rank, const GenerateOptions& options, const executor::Request& request,
                 const Conversation* conversation)
      : rank_(rank),
        options_(options),
        asked_(request),
        conversation_(conversation),
        samples_(static_cast<std::size_t>(rank.state().microbatches())),
        positions_(rank.state().context().sequence) {
    TRIAX_REQUIRE(rank.state().context().micro == 1, "texts are microbatches of one sequence");
    const std::int64_t vocab = std::min(options.tokenizer->vocab(), rank.state().context().vocab);
    if (rank.state().makes_logits()) sampler_.emplace(options.sampling, vocab);
    chosen_.resize(samples_ + 1); // and the request
    rows_.reserve(samples_ * static_cast<std::size_t>(rank.state().context().max_rows));
  }

  int run() {
    while (read_prompt()) {
      begin();
      const Clock::time_point began = Clock::now();
      append_prompt();
      answer_.prompt_s = seconds_since(began);
      const Clock::time_point generated = Clock::now();
      if (request_ == 0) extend();
      answer_.new_s = seconds_since(generated);
      end_open(TextEnd::signal); // only a signal leaves some open
      if (conversation_) conversation_->answered(answer_);
      if (request_ != 0) break;
    }
    return request_;
  }

 private:
  /// Rank 0 sends the number of tokens, or -1 if there is none, and the tokens.
  bool read_prompt() {
    answer_ = {};
    std::int32_t head[2] = {-1, asked_()};
    if (conversation_) {
      std::optional<Tokens> prompt = head[1] == 0 ? conversation_->next_prompt() : std::nullopt;
      head[1] = asked_();
      if (prompt) answer_.prompt = std::move(*prompt);
      if (prompt) head[0] = static_cast<std::int32_t>(answer_.prompt.size());
    }
    rank_.agree(head);
    request_ = head[1];
    if (request_ != 0 || head[0] < 0) return false;
    const auto count = static_cast<std::size_t>(head[0]);
    TRIAX_REQUIRE(count >= 1 && head[0] <= positions_, "a prompt of {} tokens, but a cache of {} positions", count,
                  positions_);
    answer_.prompt.resize(count, -1);
    constexpr auto kPart = static_cast<std::size_t>(TextRank::kMaxAgreed);
    for (std::size_t at = 0; at < count; at += kPart)
      rank_.agree(std::span(answer_.prompt).subspan(at, std::min(kPart, count - at)));
    return true;
  }

  void begin() {
    if (rank_.generator().length() > 0) rank_.generator().restart();
    answer_.samples.assign(samples_, {});
    streams_.assign(samples_, data::TextStream(options_.stops));
    sequences_.assign(samples_, answer_.prompt);
    const auto most = static_cast<std::size_t>(positions_ + 1);
    for (std::size_t sample = 0; sample < samples_; ++sample) {
      sequences_[sample].reserve(most);
      answer_.samples[sample].tokens.reserve(most - answer_.prompt.size());
    }
  }

  void append_prompt() {
    const auto count = static_cast<std::int64_t>(answer_.prompt.size()), most = rank_.state().context().max_rows;
    for (std::int64_t at = 0; at < count && request_ == 0; at += most) {
      const std::int64_t rows = std::min(most, count - at);
      rows_.clear();
      for (std::int64_t row = 0; row < rows; ++row)
        rows_.insert(rows_.end(), samples_, answer_.prompt[static_cast<std::size_t>(at + row)]);
      append(rows);
      request_ = asked_();
      rank_.agree({&request_, 1});
    }
  }

  void append(std::int64_t rows) {
    if (RankActivity* const activity = RankActivity::current()) activity->make_progress();
    rank_.generator().append({rows_.data(), DType::i32, {rows, static_cast<std::int64_t>(samples_)}});
    rank_.set_position(rank_.generator().length());
  }

  /// Until all samples have ended, or the token after a signal.
  void extend() {
    while (true) {
      choose();
      for (std::size_t sample = 0; sample < samples_; ++sample) take(sample, chosen_[sample]);
      request_ = chosen_.back();
      if (rank_.generator().length() == positions_) end_open(TextEnd::context);
      if (request_ != 0 || !has_open()) return;
      rows_.clear();
      for (const Tokens& sequence : sequences_) rows_.push_back(sequence.back());
      append(1);
    }
  }

  /// The next token of each sample that is open, on all ranks.
  void choose() {
    std::ranges::fill(chosen_, -1);
    chosen_.back() = asked_();
    if (sampler_)
      for (std::size_t sample = 0; sample < samples_; ++sample) {
        if (answer_.samples[sample].end != TextEnd::open) continue;
        chosen_[sample] = choose(sample);
      }
    rank_.agree(chosen_);
    const auto end = chosen_.end() - 1, found = std::find(chosen_.begin(), end, kNotFinite);
    if (found != end) throw nonfinite(static_cast<std::size_t>(found - chosen_.begin()));
  }

  std::int32_t choose(std::size_t sample) {
    const TensorView logits = rank_.generator().logits(static_cast<int>(sample));
    const std::optional<std::int32_t> token =
        sampler_->choose(logits.at(logits.size(0) - 1).flat(), sequences_[sample], static_cast<std::uint32_t>(sample));
    if (!token && !nonfinite_) nonfinite_.emplace(sample, sampler_->nonfinite());
    return token.value_or(kNotFinite);
  }

  /// All ranks make the same error: data ranks may have found other tokens, or none.
  executor::NonfiniteError nonfinite(std::size_t sample) {
    const bool found = nonfinite_ && nonfinite_->first == sample;
    std::int32_t token = found ? nonfinite_->second.token : -1;
    rank_.agree({&token, 1});
    std::int32_t kind = -1;
    if (found && nonfinite_->second.token == token)
      kind = static_cast<std::int32_t>(nonfinite_kind(nonfinite_->second.value));
    rank_.agree({&kind, 1});
    const std::string of_sample = samples_ > 1 ? text("sample {}, ", sample) : "";
    return executor::NonfiniteError(
        Error(text("the logit of token {} is {}", token, nonfinite_text(static_cast<NonfiniteKind>(kind))),
              text("{}after {} tokens", of_sample, rank_.generator().length()),
              nonfinite_hint(rank_.state().context().compute)));
  }

  void take(std::size_t sample, std::int32_t token) {
    GeneratedText& text = answer_.samples[sample];
    if (text.end != TextEnd::open) return;
    if (std::ranges::find(options_.ends, token) != options_.ends.end()) return end(sample, TextEnd::end_of_document);
    text.tokens.push_back(token);
    sequences_[sample].push_back(token);
    add(sample, streams_[sample].add(bytes_of(*options_.tokenizer, token)));
    if (streams_[sample].is_stopped()) return end(sample, TextEnd::stop);
    if (static_cast<std::int64_t>(text.tokens.size()) == options_.max_tokens) end(sample, TextEnd::length);
  }

  void add(std::size_t sample, const std::string& part) {
    answer_.samples[sample].text += part;
    if (conversation_ && !part.empty()) conversation_->text(sample, part);
  }

  void end(std::size_t sample, TextEnd why) {
    add(sample, streams_[sample].finish());
    answer_.samples[sample].end = why;
    if (conversation_) conversation_->ended(sample, answer_.samples[sample]);
  }

  void end_open(TextEnd why) {
    for (std::size_t sample = 0; sample < samples_; ++sample)
      if (answer_.samples[sample].end == TextEnd::open) end(sample, why);
  }

  bool has_open() const {
    return std::ranges::any_of(answer_.samples, [](const GeneratedText& text) { return text.end == TextEnd::open; });
  }

  TextRank& rank_;
  const GenerateOptions& options_;
  const executor::Request& asked_;
  const Conversation* const conversation_;
  const std::size_t samples_;
  const std::int64_t positions_;
  std::optional<executor::TokenSampler> sampler_; // set on the ranks that have logits
  /// The first sample of this rank with such a logit.
  std::optional<std::pair<std::size_t, executor::TokenSampler::NonfiniteLogit>> nonfinite_;
  Answer answer_;
  std::vector<data::TextStream> streams_;
  std::vector<Tokens> sequences_; // with the prompt, by sample
  Tokens rows_;                   // [rows, samples], of one append
  Tokens chosen_;                 // by sample; then the request
  std::int32_t request_ = 0;
};

} // namespace

const char* name_of(TextEnd end) {
  switch (end) {
    case TextEnd::open:
      return "open";
    case TextEnd::length:
      return "length";
    case TextEnd::context:
      return "context";
    case TextEnd::stop:
      return "stop";
    case TextEnd::end_of_document:
      return "end_of_document";
    case TextEnd::signal:
      break;
  }
  return "signal";
}

std::int64_t Answer::new_tokens() const {
  return std::transform_reduce(samples.begin(), samples.end(), std::int64_t{0}, std::plus<>(),
                               [](const GeneratedText& text) { return static_cast<std::int64_t>(text.tokens.size()); });
}

int generate_text(TextRank& rank, const GenerateOptions& options, const executor::Request& request,
                  const Conversation* conversation) {
  return TextGeneration(rank, options, request, conversation).run();
}

} // namespace triax::train
