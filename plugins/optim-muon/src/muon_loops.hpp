// SPDX-License-Identifier: Apache-2.0
// The loops of a Muon step over host memory: what the kernel set has no operation for. Each leaves views without data
// alone (dry run). The caller waits for the stream.
#pragma once

#include <triax/optimizer.hpp>

namespace triax::optim_muon {

void fill(const TensorView& view, double value);

/// The running sum of gradients m = momentum m + clip g, in the first state tensor of the shard.
struct Momentum {
  double momentum = 0, clip = 1;
  bool nesterov = true;
};
/// Adds the gradient to the running sum, and writes the direction of the elements of the shard: m, or
/// clip g + momentum m with Nesterov's momentum.
void update_momentum(const ParameterShard& shard, const Momentum& of, const TensorView& direction);

/// Divides row i of x [count, n] by the root of squares[i], f64, plus 1e-7.
void divide_by_norms(const TensorView& x, const TensorView& squares);

/// polynomial += b gram + a I, for square matrices in the last two dimensions.
void add_lower_terms(const TensorView& polynomial, const TensorView& gram, double a, double b);

/// The numbers of an update that all elements of a parameter share.
struct UpdateRates {
  double lr = 0, scale = 1, decay = 0;
};
/// p -= lr (scale direction + decay p), of all elements of the shard, and the working weights.
void update_weights(const ParameterShard& shard, const UpdateRates& of, const TensorView& direction);

} // namespace triax::optim_muon
