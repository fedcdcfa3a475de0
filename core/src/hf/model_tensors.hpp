// SPDX-License-Identifier: Apache-2.0
// The tensors of a model's folder: those of model.safetensors, or of the shards that model.safetensors.index.json
// names. Files of other formats, pickled ones above all, are never opened.
//
// Threads: one per object. Ownership: owns open files. Blocking: reads. Errors: Error with the file and the tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "os/input_file.hpp"

namespace triax::hf {

inline constexpr std::size_t kMaxModelFiles = 4096; // all are open at once
inline constexpr const char *kSingleFile = "model.safetensors", *kIndexFile = "model.safetensors.index.json";

class ModelTensors {
 public:
  struct Tensor {
    checkpoint::TensorEntry entry;
    std::size_t file = 0;
  };
  /// One that Triax cannot read.
  struct Foreign {
    checkpoint::ForeignTensor entry;
    std::size_t file = 0;
  };

  /// Reads the index and all headers. Refuses a folder with both a single file and an index, and shards that do not
  /// have exactly the tensors that the index names.
  explicit ModelTensors(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, Tensor>& all() const { return tensors_; }
  const std::map<std::string, Foreign>& foreign() const { return foreign_; }
  const std::filesystem::path& file_of(const auto& tensor) const { return files_[tensor.file].path; }
  /// Fills `out` with the tensor's bytes from `offset` on.
  void read(const Tensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct File {
    std::filesystem::path path;
    os::InputFile file;
    std::uint64_t data = 0; // offset
  };

  void add_file(const std::filesystem::path& path, const std::map<std::string, std::string>* index);
  void add_indexed_files(const std::filesystem::path& index);

  const std::filesystem::path folder_;
  std::vector<File> files_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, Foreign> foreign_;
};

} // namespace triax::hf
