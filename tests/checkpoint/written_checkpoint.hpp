// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints with given values, divided over any number of ranks.
#pragma once

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "checkpoint/blocks.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "checkpoint/tensor_writer.hpp"
#include "support/temp_folder.hpp"

namespace triax::checkpoint {

struct TestTensor {
  std::string parameter;
  Shape shape;
  std::vector<double> values; // empty: 0, 1, 2...
  std::string state = kMasterState;
  DType dtype = DType::f32;
};

inline std::vector<double> test_values(const TestTensor& tensor) {
  if (!tensor.values.empty()) return tensor.values;
  std::vector<double> out(static_cast<std::size_t>(tensor.shape.elements()));
  std::iota(out.begin(), out.end(), 0.0);
  return out;
}

/// Each rank writes some of the rows of each tensor.
inline void write_checkpoint(const std::filesystem::path& folder, const std::vector<TestTensor>& tensors,
                             std::int64_t step = 7, int ranks = 1) {
  std::filesystem::create_directories(folder);
  PartMerger all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorData> data;
    for (const TestTensor& tensor : tensors) {
      const std::vector<double> values = test_values(tensor);
      std::vector<std::byte>& elements = bytes.emplace_back(values.size() * bytes_of(tensor.dtype));
      from_doubles(values, tensor.dtype, elements.data());
      const std::int64_t first = tensor.shape[0] * rank / ranks, end = tensor.shape[0] * (rank + 1) / ranks;
      Shape begin = tensor.shape, size = tensor.shape;
      for (int dim = 0; dim < begin.rank(); ++dim) begin[dim] = 0;
      begin[0] = first;
      size[0] = end - first;
      const auto offset = elements.size() / static_cast<std::size_t>(tensor.shape[0]) * static_cast<std::size_t>(first);
      data.push_back({tensor.parameter, tensor.state, tensor.dtype, tensor.shape, {}});
      if (end > first) data.back().boxes.push_back({begin, size, elements.data() + offset});
    }
    all.add(write_tensors(folder, "weights-" + std::to_string(rank) + ".safetensors", data));
  }
  Manifest manifest;
  manifest.training.step = step;
  manifest.training.samples = 4 * step;
  manifest.tokens = 400 * step;
  manifest.engine = "0.0.1";
  manifest.config = {{"train.steps", "50"}, {"run.dir", folder.parent_path().string()}};
  manifest.content = all.take();
  test::write_file(folder / kManifestFile, to_json(manifest));
}

/// Of one tensor.
inline std::vector<double> read_values(TensorReader& reader, const std::string& parameter,
                                       const std::string& state = kMasterState) {
  const SavedTensor& tensor = *reader.find(parameter, state);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.elements()) * bytes_of(tensor.dtype));
  Shape origin = tensor.shape;
  for (int dim = 0; dim < origin.rank(); ++dim) origin[dim] = 0;
  reader.read(tensor, origin, tensor.shape, bytes.data());
  std::vector<double> out(static_cast<std::size_t>(tensor.shape.elements()));
  to_doubles(tensor.dtype, bytes.data(), out);
  return out;
}

/// Changes a bit of the last byte.
inline void damage(const std::filesystem::path& file) {
  std::string bytes = test::read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_file(file, bytes);
}

inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

} // namespace triax::checkpoint
