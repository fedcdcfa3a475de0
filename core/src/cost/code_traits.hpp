// SPDX-License-Identifier: Apache-2.0
// Properties of a training program beyond the operations of its layers: what it fuses, stores, overlaps and waits for.
// The cost model predicts published runs, which other programs made, and runs of this engine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "triax/tensor.hpp"

namespace triax::cost {

struct CodeTraits {
  /// Attention keeps its scores from the forward for the backward, or makes them again, or, tiled, never writes them to
  /// memory: then the backward makes them twice, in seven products.
  enum class Scores { stored, recomputed, tiled };
  Scores scores = Scores::stored;
  bool fuses_softmax = true;        // scale, mask and softmax in one kernel
  bool fuses_elementwise = true;    // bias with GeLU, and bias, dropout and residual
  bool accumulates_in_gemm = false; // weight gradients; otherwise in a separate pass
  bool overlaps_tensor = false;     // collectives of the input gradient run beside the weight gradient
  bool synchronizes = true;         // the host waits for the device after each transfer between stages
  bool overlaps_reduction = false;  // gradients are reduced beside the last backward, and not after the flush
  bool recomputes_early = false;    // what a backward reads first is recomputed while its gradient is received (R)
  double reduction_copy_bytes = 12; // copies around the reduction, per parameter
  /// Bytes of an element of a gradient when it is reduced. Empty: as in this engine, those of the master type.
  std::optional<double> reduction_bytes = 2;
  /// Read and written per parameter by unscaling, norm, update and casts. Empty: as in this engine, by the optimizer.
  std::optional<double> update_bytes = 60;
};

/// "megatron-2021": NVIDIA/Megatron-LM of SC'21 (commit de7dc40f). "megatron-2022": that of arXiv 2205.05198. "triax":
/// this engine with kernels-fused. Empty for another name.
std::optional<CodeTraits> code_named(std::string_view name);

/// Bytes per parameter that are reduced.
double reduction_bytes(const CodeTraits& code, DType master);

/// Bytes per parameter that the update reads and writes. `states`: tensors of the optimizer's state.
double update_bytes(const CodeTraits& code, std::size_t states, DType master, DType compute);

} // namespace triax::cost
