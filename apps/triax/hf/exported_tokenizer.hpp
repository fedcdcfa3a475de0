// SPDX-License-Identifier: Apache-2.0
// The tokenizer of an exported model: that of the imported model that the run began with, if the run's data have no
// other; else that of the data.
//
// Blocking: reads manifests and tokenizers. Errors: none: a model can be exported without a tokenizer.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/tensor_reader.hpp"
#include "hf/model_export.hpp"
#include "triax/error.hpp"

namespace triax::app {

struct ExportedTokenizer {
  std::filesystem::path files; // folder to copy it from; empty: the folder of the checkpoint, if nothing is made
  hf::NewTokenizer made = {};
  std::string note = {};             // where it is from, or why there is none
  std::optional<Error> warning = {}; // the imported model has another
};
ExportedTokenizer find_tokenizer(const checkpoint::TensorReader& from);

} // namespace triax::app
