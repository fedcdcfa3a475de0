// SPDX-License-Identifier: Apache-2.0
// Finds data whose tokenizer is not that of the checkpoint that a run uses: their ids stand for other texts than those
// that the weights were trained on.
//
// Blocking: reads the tokenizer of an imported checkpoint. Errors: none: tokenizers that cannot be read are not
// compared.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/manifest.hpp"
#include "config/run_config.hpp"
#include "train/resume_point.hpp"
#include "triax/error.hpp"

namespace triax::train {

struct TokenizerChange {
  std::string text;  // "A and B have different tokenizers: ..."
  std::string flags; // of triax data prepare, for the checkpoint's tokenizer
};

/// Compares the corpora that the run reads with the tokenizer of the checkpoint: that of the imported model; else that
/// of its data, as the manifest has recorded it, or as PREFIX.json describes it today.
std::optional<TokenizerChange> find_tokenizer_change(const config::RunConfig& run, const std::filesystem::path& folder,
                                                     const checkpoint::Manifest& manifest,
                                                     const checkpoint::DataContent& data);

/// The refusal of the change, unless checkpoint.changed_data accepts it.
Refusals check_tokenizer(const config::RunConfig& run, const ResumePoint& point, const TokenizerChange& change);

} // namespace triax::train
