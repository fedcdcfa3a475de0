// SPDX-License-Identifier: Apache-2.0
// The learning rate of a step.
//
// Threads: pure. Ownership: values. Blocking: never. Errors: Error of a decay that is none.
//
// With n steps of which w warm up, step k (from 1) has
//   k <= w:            lr * k / w
//   after, constant:   lr
//   after, linear:     min + (lr - min) * (1 - x)               x = (k - w) / (n - w), in (0, 1]
//   after, cosine:     min + (lr - min) * (1 + cos(pi * x)) / 2
// so that step w has lr itself and the last step has min. With w > n the run ends in its warm-up, below lr, which is
// noted when it starts. A run that goes on beyond n stays at min (constant: at lr).
#pragma once

#include <cstdint>

#include "config/run_config.hpp"

namespace triax::train {

double learning_rate(const config::RunConfig& run, std::int64_t step);

} // namespace triax::train
