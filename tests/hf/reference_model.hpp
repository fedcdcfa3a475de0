// SPDX-License-Identifier: Apache-2.0
// Folders that transformers has saved (scripts/make-hf-reference.py), and their import.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/tensor_reader.hpp"
#include "checkpoint/weights.hpp"
#include "hf/model_export.hpp"
#include "hf/model_import.hpp"
#include "hf/model_tensors.hpp"
#include "support/temp_folder.hpp"

namespace triax::hf {

inline constexpr const char* kReferences[] = {"gpt2-odd",   "gpt2-inner",      "gpt2-sharded", "llama-scaled",
                                              "llama-tied", "mistral-grouped", "qwen2-biased", "qwen3-normed"};

/// "llama_scaled"
inline std::string test_name(const ::testing::TestParamInfo<const char*>& one) {
  std::string out = one.param;
  std::ranges::replace(out, '-', '_');
  return out;
}

inline std::filesystem::path reference(const std::string& model) {
  return std::filesystem::path(REFERENCE) / model;
}

/// The bytes of every tensor of a model's folder.
inline std::map<std::string, std::vector<std::byte>> tensors_in(const std::filesystem::path& folder) {
  const ModelTensors all(folder);
  std::map<std::string, std::vector<std::byte>> out;
  for (const auto& [name, tensor] : all.all()) {
    out[name].resize(tensor.entry.bytes());
    all.read(tensor, 0, out[name]);
  }
  return out;
}

/// The bytes of every parameter of a checkpoint.
inline std::map<std::string, std::vector<std::byte>> weights_in(const std::filesystem::path& checkpoint) {
  checkpoint::TensorReader reader(checkpoint);
  std::map<std::string, std::vector<std::byte>> out;
  for (const checkpoint::SavedTensor* tensor : checkpoint::weights_of(reader.manifest())) {
    Shape origin = tensor->shape;
    for (int dim = 0; dim < origin.rank(); ++dim) origin[dim] = 0;
    out[tensor->parameter].resize(static_cast<std::size_t>(tensor->shape.elements()) * bytes_of(tensor->dtype));
    reader.read(*tensor, origin, tensor->shape, out[tensor->parameter].data());
  }
  return out;
}

/// Writes the checkpoint `output` and a TOML beside it, "output.toml".
inline ImportedModel import_model(const std::filesystem::path& folder, const std::filesystem::path& output,
                                  const std::string& data = {}) {
  ModelImport from({.folder = folder, .output = output, .run = output.string() + ".toml", .data = data});
  if (!from.refusals().empty()) throw to_error(from.refusals());
  return from.write();
}

inline ExportedModel export_model(const std::filesystem::path& checkpoint, ExportRequest request) {
  checkpoint::TensorReader reader(checkpoint);
  ModelExport to(reader, std::move(request));
  if (!to.refusals().empty()) throw to_error(to.refusals());
  return to.write();
}

} // namespace triax::hf
