// SPDX-License-Identifier: Apache-2.0
// Writes the parts of tensors that a rank saves to a safetensors file.
//
// Threads: any. Ownership: borrows the memory. Blocking: writes, and waits until the file is on the disk. Errors: Error
// with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/stop_request.hpp"

namespace triax::checkpoint {

/// A box of a global tensor, contiguous in host memory, or else what reads its bytes from an offset on.
struct BoxData {
  Shape begin, size;
  const std::byte* data = nullptr;
  std::function<void(std::uint64_t offset, std::span<std::byte> to)> read = {}; // without `data`
};

struct TensorData {
  std::string parameter, state; // as in SavedTensor
  DType dtype = DType::f32;
  Shape shape; // of the global tensor
  std::vector<BoxData> boxes;
};

/// Creates `folder`/`name`; without boxes, no file. The result names the file and its pieces. Gives up with
/// an Error once `stop` returns true; it is asked for each block that is written.
SavedPart write_tensors(const std::filesystem::path& folder, const std::string& name,
                        std::span<const TensorData> tensors, const StopRequest& stop = {});

} // namespace triax::checkpoint
