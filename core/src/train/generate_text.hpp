// SPDX-License-Identifier: Apache-2.0
// Generates text on one rank: prompts come from rank 0, and all ranks extend the same sequences.
//
// Threads: the rank's main thread. Ownership: borrows everything. Blocking: until the last prompt is answered, or a
// signal. Errors: Error of a forward, of the tokenizer, or of what Conversation throws; executor::NonfiniteError, on
// all ranks, if a logit is not finite.
//
// The ranks of the last stage choose tokens from the same logits, and all ranks agree on them. So each rank knows the
// texts, and they end at the same token without further messages.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"
#include "executor/token_sampler.hpp"
#include "train/score_sequences.hpp"
#include "train/text_rank.hpp"

namespace triax::train {

struct GenerateOptions {
  executor::SamplingOptions sampling{};
  std::int64_t max_tokens = 0;      // new ones of each sample; 0: until the context is full
  std::vector<std::string> stops{}; // a text ends before the first of them
  std::vector<std::int32_t> ends{}; // tokens that end a text, and are not part of it
  const data::Tokenizer* tokenizer = nullptr;
};

enum class TextEnd : std::uint8_t {
  open,            // it still grows
  length,          // max_tokens
  context,         // the model has no more positions
  stop,            // a stop sequence
  end_of_document, // one of GenerateOptions::ends
  signal
};
/// "length", "end_of_document"...
const char* name_of(TextEnd end);

struct GeneratedText {
  std::string text;
  std::vector<std::int32_t> tokens; // without one of GenerateOptions::ends
  TextEnd end = TextEnd::open;
};

struct Answer {
  std::vector<std::int32_t> prompt;
  std::vector<GeneratedText> samples;
  double prompt_s = 0, new_s = 0; // seconds for the prompt, and for the new tokens
  std::int64_t new_tokens() const;
};

/// The source of prompts and the output of texts of rank 0. All on its main thread.
struct Conversation {
  /// The tokens of the next prompt, at most as many as the cache has positions; empty: there is none, or a signal came.
  std::function<std::optional<std::vector<std::int32_t>>()> next_prompt;
  /// Called with each part of a sample's text, which is not empty.
  std::function<void(std::size_t sample, std::string_view part)> text;
  std::function<void(std::size_t sample, const GeneratedText& text)> ended;
  std::function<void(const Answer& answer)> answered;
};

/// The job of the ranks of a run with run.generate.
struct TextJob {
  GenerateOptions options;
  Conversation conversation;           // of rank 0
  std::optional<ScoreJob> scores = {}; // if it is set, the ranks do this, and generate nothing
};

/// A request that is not 0 on any rank, such as a signal, ends it after the next token. Returns the largest, or 0.
/// `conversation`: of rank 0; null on the others.
int generate_text(TextRank& rank, const GenerateOptions& options, const executor::Request& request,
                  const Conversation* conversation);

} // namespace triax::train
