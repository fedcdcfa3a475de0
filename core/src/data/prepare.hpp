// From text files to a dataset: PREFIX.bin, PREFIX.idx, PREFIX.json, and PREFIX-validation.* if asked.
//
// Threads: the caller's reads and writes, others encode; what is written does not depend on their number. Ownership:
// values. Blocking: reads and writes files; memory is constant, whatever their size and that of their documents.
// Errors: what was asked wrongly becomes a refusal before anything is written; what fails later is an Error, and leaves
// nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/document_reader.hpp"
#include "data/tokenizer.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "triax/error.hpp"

namespace triax::data {

struct PrepareRequest {
  std::vector<std::filesystem::path> inputs; // in this order
  std::filesystem::path output;              // the prefix; its folder is made if it is missing
  TokenizerChoice tokenizer;
  bool append_eod = false;              // byte: documents always end so
  std::string eod_token = kEndOfText;   // an added token of the tokenizer
  std::optional<std::string> separator; // a line that ends a document; an input's end always does
  double validation_fraction = 0;       // of the documents, spread evenly; 0: no validation dataset
  bool force = false;                   // replace files that are there
  int threads = 1;                      // that encode
};

struct PreparedPart {
  std::filesystem::path prefix;
  std::int64_t documents = 0, tokens = 0;
  std::uint64_t bytes = 0;                  // of PREFIX.bin
  std::vector<std::filesystem::path> files; // .bin, .idx, .json...
};

struct Prepared {
  std::int64_t vocab = 0;
  PreparedPart train;
  std::optional<PreparedPart> validation;
};

/// Everything that speaks against the request; empty: prepare() may start.
std::vector<Support> refusals(const PrepareRequest& request);

/// The token that ends each document, if there is one. Throws Error if the tokenizer lacks the one asked for.
std::optional<std::int32_t> end_of_document(const PrepareRequest& request, const Tokenizer& tokenizer);

/// `progress` is called for the last time when all but the names are written. If it throws, nothing is left, and what
/// was there before stays.
Prepared prepare(const PrepareRequest& request, const ReadProgress& progress);

} // namespace triax::data
