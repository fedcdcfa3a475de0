// SPDX-License-Identifier: Apache-2.0
// Trains a tokenizer.json on text files.
//
// Threads: the calling thread reads and merges, others count words; the result does not depend on their number.
// Blocking: reads and writes files. Memory: grows with the number of distinct words. Errors: refusals() reports an
// invalid request before anything is read; a later failure throws Error and keeps an existing file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/document_reader.hpp"
#include "data/tokenizer/tokenizer_json.hpp"

namespace triax::data {

struct TrainTokenizerRequest {
  std::vector<std::filesystem::path> inputs;
  std::optional<std::string> separator; // as in PrepareRequest
  std::filesystem::path output;         // path of the tokenizer.json
  std::int64_t vocab = 0;
  std::int64_t min_count = 2;
  std::vector<std::string> special_tokens = {kEndOfText};
  bool force = false;
  int threads = 1;
};

struct TrainedTokenizer {
  std::int64_t tokens = 0, merges = 0; // tokens: fewer than requested if the text has no more pairs
  std::int64_t words = 0;              // distinct words
  std::uint64_t bytes = 0;             // size of the inputs
};

struct TrainProgress {
  ReadProgress reading;
  std::function<void(std::int64_t tokens, std::int64_t vocab)> merging;
};

Refusals refusals(const TrainTokenizerRequest& request);
TrainedTokenizer train_tokenizer(const TrainTokenizerRequest& request, const TrainProgress& progress);

} // namespace triax::data
