// SPDX-License-Identifier: Apache-2.0
// The imported model that the weights of a checkpoint began with, found by checkpoint.from in its manifest and in those
// of the checkpoints that it names.
//
// Blocking: reads manifests. Errors: none: other checkpoints are of use, but not needed.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/tensor_reader.hpp"

namespace triax::hf {

struct ModelOrigin {
  std::filesystem::path folder; // with config.json and the tokenizer; empty if there is none or it is not found
  std::string problem;          // why it is not found; empty without checkpoint.from
};
ModelOrigin find_origin(const checkpoint::TensorReader& from);

} // namespace triax::hf
