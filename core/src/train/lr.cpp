// SPDX-License-Identifier: Apache-2.0
// The formulas of lr.hpp.
#include "train/lr.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "triax/error.hpp"

namespace triax::train {

double learning_rate(const config::RunConfig& run, std::int64_t step) {
  const double lr = run.optimizer_core.lr, min = run.lr.min;
  const std::int64_t warmup = run.lr.warmup_steps, steps = run.train.steps;
  if (step <= warmup) return lr * static_cast<double>(step) / static_cast<double>(warmup);
  if (run.lr.decay == "constant") return lr;
  const double x = std::min(
      1.0, static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup)));
  if (run.lr.decay == "linear") return min + (lr - min) * (1 - x);
  TRIAX_REQUIRE(run.lr.decay == "cosine", "lr.decay must be constant, linear or cosine, got \"{}\"", run.lr.decay);
  return min + (lr - min) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

} // namespace triax::train
