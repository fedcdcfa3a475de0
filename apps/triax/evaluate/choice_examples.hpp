// SPDX-License-Identifier: Apache-2.0
// Examples of `triax evaluate --choices`: contexts, the endings to choose from, and which one is right.
//
// A file of JSON lines: {"context": "...", "endings": ["...", ...], "label": 0}. Several endings are a choice, as in
// HellaSwag. One ending is what the model should write itself, as in LAMBADA.
//
// Blocking: reads the file. Errors: diagnostics with file and line, all of them up to a limit; Error if the file cannot
// be read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "train/score_sequences.hpp"

namespace triax::app {

struct ChoiceExample {
  std::string context;
  std::vector<std::string> endings;
  std::size_t label = 0;
  std::size_t line = 0; // from 1
};

/// At least one example, all with one ending or all with several; else `refusals` is not empty.
std::vector<ChoiceExample> read_choices(const std::filesystem::path& file, std::vector<config::Diagnostic>& refusals);

/// How examples become tokens.
struct ChoiceTokens {
  const std::filesystem::path& file;
  const data::Tokenizer& tokenizer;
  std::vector<std::int32_t> separator; // what an empty context is; empty: it is refused
};

/// One sequence per ending, in order. Contexts are encoded together with the ending, which begins after as many tokens
/// as the context alone has, without spaces at its end: many tokenizers join a space and the word after it
/// (lm-evaluation-harness 0.4, lm_eval/api/model.py, _encode_pair()).
std::vector<train::ScoredSequence> sequences_of(const std::vector<ChoiceExample>& examples, const ChoiceTokens& to,
                                                std::vector<config::Diagnostic>& refusals);

/// Refuses sequences that have more tokens than the model has positions; the last token is only a target.
std::vector<config::Diagnostic> too_long(const std::vector<ChoiceExample>& examples, const std::filesystem::path& file,
                                         const std::vector<train::ScoredSequence>& sequences, std::int64_t positions);

} // namespace triax::app
