// SPDX-License-Identifier: Apache-2.0
// The content of a checkpoint as text and as JSON.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "checkpoint/tensor_reader.hpp"

namespace triax::app {

/// Without `all`, parameters that differ only in their layer number share one row, and the files and the keys of the
/// run are left out.
std::string contents_text(const checkpoint::TensorReader& reader, bool all);
/// One line. The manifest without pieces and checksums.
std::string contents_json(const checkpoint::TensorReader& reader);

} // namespace triax::app
