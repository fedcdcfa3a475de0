// From text files to a dataset: PREFIX.bin, PREFIX.idx, PREFIX.json, and PREFIX-validation.* if asked.
//
// Threads: one. Ownership: values. Blocking: reads and writes files; memory is constant, whatever their size. Errors:
// what was asked wrongly becomes a refusal before anything is written; what fails later is an Error, and leaves
// nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "triax/error.hpp"

namespace triax::data {

struct PrepareRequest {
  std::vector<std::filesystem::path> inputs; // in this order
  std::filesystem::path output;              // the prefix; its folder is made if it is missing
  std::string tokenizer;
  std::optional<std::string> separator; // a line that ends a document; an input's end always does
  double validation_fraction = 0;       // of the documents, spread evenly; 0: no validation dataset
  bool force = false;                   // replace files that are there
};

struct PreparedPart {
  std::filesystem::path prefix;
  std::int64_t documents = 0, tokens = 0;
  std::uint64_t bytes = 0; // of PREFIX.bin
};

struct Prepared {
  PreparedPart train;
  std::optional<PreparedPart> validation;
};

/// Bytes read so far, of all inputs together; called for the last time when all but the names are written. It may
/// throw: then nothing is left, and what was there before stays.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Everything that speaks against the request; empty: prepare() may start.
std::vector<Support> refusals(const PrepareRequest& request);

Prepared prepare(const PrepareRequest& request, const ReadProgress& progress);

} // namespace triax::data
