// SPDX-License-Identifier: Apache-2.0
// The learning rate of a step.
//
// Threads: pure function. Errors: Error for an unknown decay.
//
// With n steps, w of them warm-up, step k (from 1) has
//   k <= w:            lr * k / w
//   after, constant:   lr
//   after, linear:     min + (lr - min) * (1 - x)               x = (k - w) / (n - w), in (0, 1]
//   after, cosine:     min + (lr - min) * (1 + cos(pi * x)) / 2
// So step w has lr itself, and the last step has min. If w > n, the run ends in its warm-up, below lr; a note says so
// when the run starts. Beyond n, the rate stays at min (constant: at lr).
#pragma once

#include <cstdint>

#include "config/run_config.hpp"

namespace triax::train {

double learning_rate(const config::RunConfig& run, std::int64_t step);

} // namespace triax::train
