// SPDX-License-Identifier: Apache-2.0
// Converts text files to a dataset: PREFIX.bin, PREFIX.idx, PREFIX.json, and PREFIX-validation.* if requested.
//
// Threads: the calling thread reads and writes, others encode; the output does not depend on their number. Blocking:
// reads and writes files. Memory: constant, whatever the size of the files and documents. Errors: refusals() reports an
// invalid request before anything is written; a later failure throws Error and leaves no files behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/document_reader.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer_choice.hpp"
#include "triax/error.hpp"

namespace triax::data {

struct PrepareRequest {
  std::vector<std::filesystem::path> inputs; // read in this order
  std::filesystem::path output;              // prefix; its folder is created if it is missing
  TokenizerChoice tokenizer;
  bool append_eod = false;              // kind "byte" appends its end of document
  std::string eod_token = kEndOfText;   // an added token of the tokenizer
  std::optional<std::string> separator; // a line that ends a document; the end of an input always does
  double validation_fraction = 0;       // share of the documents, spread evenly; 0: no validation dataset
  bool force = false;                   // replace existing files
  int threads = 1;                      // encoder threads
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

/// The reasons why the request is invalid; empty: prepare() may be called.
Refusals refusals(const PrepareRequest& request);

/// Id of the token that ends each document, if any. Throws Error if the tokenizer does not have the requested token.
std::optional<std::int32_t> end_of_document(const PrepareRequest& request, const Tokenizer& tokenizer);

/// The last call of `progress` is made when all files are complete but not yet renamed. If it throws, no new file is
/// left and existing files stay.
Prepared prepare(const PrepareRequest& request, const ReadProgress& progress);

} // namespace triax::data
