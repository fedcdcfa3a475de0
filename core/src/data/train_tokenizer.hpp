// From text files to a tokenizer.json.
//
// Threads: the caller's reads and merges, others count words; the result does not depend on their number. Ownership:
// values. Blocking: reads and writes files. Memory: grows with the number of different words. Errors: what was asked
// wrongly becomes a refusal before anything is read; what fails later is an Error, and leaves what was there.
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
  std::optional<std::string> separator; // as of prepare()
  std::filesystem::path output;         // the tokenizer.json
  std::int64_t vocab = 0;
  std::int64_t min_count = 2;
  std::vector<std::string> special_tokens = {kEndOfText};
  bool force = false;
  int threads = 1;
};

struct TrainedTokenizer {
  std::int64_t tokens = 0, merges = 0; // tokens: fewer than asked for if the text gives no more
  std::int64_t words = 0;              // different ones
  std::uint64_t bytes = 0;             // of the inputs
};

struct TrainProgress {
  ReadProgress reading;
  std::function<void(std::int64_t tokens, std::int64_t vocab)> merging;
};

std::vector<Support> refusals(const TrainTokenizerRequest& request);
TrainedTokenizer train_tokenizer(const TrainTokenizerRequest& request, const TrainProgress& progress);

} // namespace triax::data
