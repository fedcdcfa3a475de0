// SPDX-License-Identifier: Apache-2.0
// The result of `triax evaluate`, and its two output formats.
//
// Threads: pure functions, which query the working folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "train/loop.hpp"

namespace triax::app {

/// "loss 2.5613, perplexity 12.953, 3.6952 bits per byte: 8,192 tokens of 32 samples, 12.3 k tokens/s; weights of
/// runs/tiny/checkpoints/step-00000050". Bits per token, if the number of bytes is not known.
std::string evaluation_line(const config::RunConfig& run, const train::LoopResult& result);
/// Sets checkpoint, step, loss, perplexity and so on. Null without an evaluation: it was stopped.
void add_evaluation(nlohmann::ordered_json& out, const train::LoopResult& result);

} // namespace triax::app
