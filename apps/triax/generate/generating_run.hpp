// SPDX-License-Identifier: Apache-2.0
// The run's configuration and the tokenizer of a checkpoint, to generate text with it.
//
// Blocking: reads the manifest and the tokenizer, loads the named plugins. Errors: Error with the file; errors of keys
// are in LoadResult::refusals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "config/load.hpp"
#include "data/text_tokenizer.hpp"
#include "data/tokenizer_choice.hpp"

namespace triax::app {

/// A checkpoint, and the file that messages name: its manifest, or the config.json that it was imported from.
struct GeneratingSource {
  std::filesystem::path checkpoint;
  const checkpoint::Manifest& manifest;
  std::filesystem::path shown;
};

/// The run of a checkpoint, on one rank unless `overrides` say more. The model, its precision, the kernel set and the
/// plugin folders are those that the manifest has. comm-local connects the ranks, unless `overrides` name another
/// communicator. What concerns training only has values without effect. `world`: number of ranks, if a launcher has set
/// it.
config::LoadResult load_generating_run(const GeneratingSource& source, const std::vector<config::Override>& overrides,
                                       std::optional<int> world, plugin::FirstLoad first_load);

/// Where the tokenizer of a checkpoint may be.
struct TokenizerSource {
  std::filesystem::path checkpoint;
  const checkpoint::Manifest& manifest;
  std::filesystem::path model_folder; // a model of transformers: the folder itself, or `hf` in the checkpoint
  std::int64_t vocab;                 // of the model
};

/// `given`: by flags; without a name: that of the imported model, else that of the training data, which must be there.
/// An imported model's end tokens come with each of them.
data::TextTokenizer tokenizer_of(const TokenizerSource& source, const data::TokenizerChoice& given);

} // namespace triax::app
