// SPDX-License-Identifier: Apache-2.0
// The part of a kept tensor that a rank saves: its view, and its boxes of the global tensor for the writer of a
// checkpoint.
//
// Threads: pure. Ownership: the results refer to the tensor's memory, or to its offloaded state. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/tensor_writer.hpp"
#include "executor/kept_state.hpp"

namespace triax::train {

/// The elements of a tensor that a rank saves of those it holds.
inline TensorView saved_view(const executor::KeptTensor& tensor) {
  const std::int64_t first = tensor.saved.first - tensor.held.first;
  return tensor.view.slice(0, first, first + tensor.saved.count);
}

/// The saved part of a tensor, which lies at `data` in host memory, unless it is offloaded.
inline checkpoint::TensorData saved_data(const executor::KeptTensor& tensor, const std::byte* data) {
  checkpoint::TensorData out{tensor.parameter, tensor.name, tensor.view.dtype(), tensor.spec->global, {}};
  const std::size_t width = bytes_of(tensor.view.dtype());
  for (const executor::Box& box : executor::boxes_of(*tensor.spec, tensor.saved.first, tensor.saved.count)) {
    checkpoint::BoxData& of = out.boxes.emplace_back(checkpoint::BoxData{box.begin, box.size});
    if (!tensor.offloaded) {
      of.data = data + static_cast<std::size_t>(box.offset) * width;
      continue;
    }
    const std::uint64_t begin = static_cast<std::uint64_t>(tensor.saved.first - tensor.held.first + box.offset) * width;
    of.read = [offloaded = tensor.offloaded, begin](std::uint64_t offset, std::span<std::byte> to) {
      offloaded.read(begin + offset, to);
    };
  }
  return out;
}

} // namespace triax::train
