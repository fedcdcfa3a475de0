// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor_writer.hpp"

#include <algorithm>
#include <string_view>

#include "checkpoint/safetensors.hpp"
#include "checksum/checksum.hpp"
#include "os/durable_file.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = std::size_t{1} << 20; // hashed while it is in the cache, then written

std::span<const std::byte> bytes_in(std::string_view content) {
  return std::as_bytes(std::span(content.data(), content.size()));
}

/// "block 3/attention.qkv.weight", "block 3/attention.qkv.weight/m[0:4, 2:3]": the box, unless it is the whole tensor.
std::string key_of(const TensorData& tensor, const BoxData& box) {
  std::string key = tensor.parameter;
  if (tensor.state != kMasterState) key += "/" + tensor.state;
  if (box.size == tensor.shape) return key;
  for (int dim = 0; dim < tensor.shape.rank(); ++dim)
    key += text("{}{}:{}", dim == 0 ? "[" : ", ", box.begin[dim], box.begin[dim] + box.size[dim]);
  return key + "]";
}

/// In memory, or read into `buffer`.
std::span<const std::byte> chunk_of(const BoxData& box, std::size_t at, std::size_t bytes,
                                    std::vector<std::byte>& buffer) {
  if (box.data) return {box.data + at, bytes};
  buffer.resize(kChunk);
  const std::span<std::byte> out = std::span(buffer).first(bytes);
  box.read(at, out);
  return out;
}

} // namespace

SavedPart write_tensors(const fs::path& folder, const std::string& name, std::span<const TensorData> tensors,
                        const StopRequest& stop) {
  SavedPart out;
  std::vector<TensorEntry> entries;
  for (const TensorData& tensor : tensors)
    for (const BoxData& box : tensor.boxes) entries.push_back({key_of(tensor, box), tensor.dtype, box.size, 0});
  if (entries.empty()) return out;
  const std::string header = make_header(entries);
  const std::uint64_t bytes = header.size() + entries.back().begin + entries.back().bytes();
  os::DurableFile file(folder / name);
  file.reserve(bytes);
  file.write(bytes_in(header));
  Checksum of_header;
  of_header.add(bytes_in(header));
  out.files.push_back({name, bytes, of_header.text()});
  std::vector<std::byte> buffer;
  std::size_t next = 0;
  for (const TensorData& tensor : tensors) {
    if (tensor.boxes.empty()) continue;
    SavedTensor& saved =
        out.tensors.emplace_back(SavedTensor{tensor.parameter, tensor.state, tensor.dtype, tensor.shape, {}});
    for (const BoxData& box : tensor.boxes) {
      const TensorEntry& entry = entries[next++];
      Checksum checksum;
      for (std::size_t at = 0; at < entry.bytes();) {
        if (is_stopped(stop))
          throw Error("stopped before it was complete", (folder / name).string(), "the checkpoint before stays");
        const std::span<const std::byte> chunk = chunk_of(box, at, std::min(entry.bytes() - at, kChunk), buffer);
        checksum.add(chunk);
        file.write(chunk);
        at += chunk.size();
      }
      saved.pieces.push_back({name, entry.name, box.begin, box.size, checksum.text()});
    }
  }
  file.finish();
  return out;
}

} // namespace triax::checkpoint
