// SPDX-License-Identifier: Apache-2.0
// Arguments of `triax generate`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "data/tokenizer_choice.hpp"
#include "executor/token_sampler.hpp"

namespace triax::app {

struct GenerateArguments {
  std::string checkpoint;
  std::string input;                 // "-" or empty
  std::optional<std::string> prompt; // --prompt
  std::string file;                  // --file; may be empty
  data::TokenizerChoice tokenizer;
  executor::SamplingOptions sampling;
  bool has_seed = false;
  std::int64_t max_tokens = 256; // 0: until the context is full
  std::vector<std::string> stops;
  int samples = 1;
  std::vector<config::Override> overrides;
  bool json = false;
  std::string choices; // file of `triax evaluate --choices`; empty: text is generated
};

/// --tokenizer, --vocab and --merges.
void add_tokenizer_flags(CLI::App& verb, GenerateArguments& arguments);

} // namespace triax::app
