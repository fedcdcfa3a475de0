// SPDX-License-Identifier: Apache-2.0
// The weights of a checkpoint, without the optimizer's state.
//
// Threads: as TensorReader. Ownership: results refer to the manifest. Blocking: check_weights() reads. Errors: Error
// with the file and the tensor.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/tensor_reader.hpp"

namespace triax::checkpoint {

/// Whether a name comes first, where numbers in it count as numbers: "block 2/w" before "block 10/w".
bool is_before(std::string_view first, std::string_view second);

/// The master weights in the order of their names, which does not depend on the ranks that wrote them.
std::vector<const SavedTensor*> weights_of(const Manifest& manifest);
/// The number of all their elements.
std::int64_t parameters_of(const Manifest& manifest);

/// Throws Error unless there are weights, of floating types, and the checksums of their files match.
void check_weights(TensorReader& reader, const StopRequest& stop);

/// Throws the Error of work that was stopped if `stop` returns true.
void check_stop(const StopRequest& stop);

} // namespace triax::checkpoint
