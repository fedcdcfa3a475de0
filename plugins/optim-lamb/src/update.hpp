// SPDX-License-Identifier: Apache-2.0
// The loops of a LAMB step over host memory: running means, sums of squares of the trust ratio, and the update.
#pragma once

#include <triax/optimizer.hpp>

namespace triax::optim_lamb {

/// The numbers of a step that all elements of a parameter share.
struct Coefficients {
  double beta1 = 0, beta2 = 0, eps = 0;
  double correction1 = 1, correction2 = 1; // 1 / (1 - beta^step), or 1
  double decay = 0;                        // 0 for parameters without weight decay
  double clip = 1;
};

/// Sums of squares of a parameter: of its weights, and of the direction of its update.
struct SquareSums {
  double weights = 0, direction = 0;
};

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, of all elements of the shard.
void update_means(const ParameterShard& shard, const Coefficients& of);

/// The sums of squares of the elements that this rank owns. The direction is m_hat / (sqrt(v_hat) + eps) + decay p,
/// after update_means().
SquareSums sum_squares(const ParameterShard& shard, const Coefficients& of);

/// p -= rate * direction, of all elements of the shard, and the working weights. The direction is computed again, so
/// that no memory has to hold it.
void update_weights(const ParameterShard& shard, const Coefficients& of, double rate);

} // namespace triax::optim_lamb
