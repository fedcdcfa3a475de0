// SPDX-License-Identifier: Apache-2.0
// Whether a kernel set computes what it should, before it is timed: outputs are finite, change, and are equal when the
// call is repeated; and those of two sets differ by rounding only.
//
// At most the first 2^22 elements of each output are compared. The memory of an output keeps its contents.
//
// Threads: one. Ownership: borrows the side. Blocking: waits for the device. Errors: Error with set and operation.
#pragma once

#include <vector>

#include "bench/gpt_operations.hpp"

namespace triax::bench {

/// Outputs on the host, by tensor.
using HostOutputs = std::vector<std::vector<double>>;

/// Runs the case twice from the same contents of its outputs.
HostOutputs check_case(KernelSide& side, const KernelCase& one);

/// The largest difference / the largest magnitude in B's tensor, over all tensors.
double difference_of(const HostOutputs& a, const HostOutputs& b);

/// The largest difference that rounding explains, in this type.
double allowed_difference(DType compute);

} // namespace triax::bench
