// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file (github.com/huggingface/safetensors, "Format"): u64 N, N bytes of JSON, then the
// tensors' data without gaps. All numbers are little-endian.
//
// Threads: pure functions; read_header(): one per file. Blocking: read_header() reads the header. Errors: Error with
// the file, and the tensor if it is about one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "os/input_file.hpp"
#include "triax/tensor.hpp"

namespace triax::checkpoint {

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0; // where its data begin, counted from the end of the header
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(shape.elements()) * bytes_of(dtype); }
};

/// A valid tensor that Triax cannot compute with: of a type that it does not have, or of more dimensions.
struct ForeignTensor {
  std::string name, dtype, shape; // "F8_E4M3", "[8, 37]"
  std::uint64_t begin = 0, bytes = 0;
};

struct SafetensorsHeader {
  std::uint64_t bytes = 0;           // size of the length and the header: the offset of the data
  std::vector<TensorEntry> entries;  // in the order of their data
  std::vector<ForeignTensor> others; // in no order
};

/// "F32"
std::string_view safetensors_name(DType type);
/// Empty for a type that Triax does not have.
std::optional<DType> type_of_safetensors(std::string_view name);

/// The length and the header, padded to a multiple of 8 bytes. `entries` lie one after another: their `begin` is set.
/// `metadata`: values of the key __metadata__, as pairs of texts.
std::string make_header(std::span<TensorEntry> entries,
                        std::span<const std::pair<std::string, std::string>> metadata = {});

/// Stricter than the format's own reader: the header begins with "{", no key occurs twice, and the data has neither
/// gaps nor overlaps nor bytes after it.
SafetensorsHeader read_header(const os::InputFile& file, const std::filesystem::path& path);

} // namespace triax::checkpoint
