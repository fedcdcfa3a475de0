// SPDX-License-Identifier: Apache-2.0
// The run of a small GPT that tests of plans vary.
//
// Threads: a constant.
#pragma once

namespace triax::plan {

inline constexpr const char* kPlannedRun = R"(
[model]
plugin = "model-gpt"
layers = 6
hidden = 64
heads = 4
sequence = 32
vocab = 250
[batch]
global = 16
[schedule]
plugin = "sched-1f1b"
[comm]
plugin = "comm-local"
[kernels]
plugin = "kernels-sim"
[optimizer]
plugin = "optim-adamw"
lr = 1e-3
[train]
steps = 1
precision = "bf16"
)";

} // namespace triax::plan
