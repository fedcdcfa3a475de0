// SPDX-License-Identifier: Apache-2.0
// The weights of a checkpoint become a folder that transformers loads.
//
// Threads: the main thread. Blocking: reads the checkpoint twice (checksums, then values), loads the model plugin,
// writes, and waits for the disk. Memory: below the largest tensor and some buffers. Errors: Error with the file; then
// there is no folder of that name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "hf/mapped_model.hpp"

namespace triax::hf {

inline constexpr std::uint64_t kMaxShardBytes = 5'000'000'000; // of the hub's own tools

/// A tokenizer that no folder has.
struct NewTokenizer {
  std::string json;                     // the text of its tokenizer.json
  std::optional<std::int32_t> end = {}; // the token that ends a text
  std::string end_text = {};            // the text that it stands for
};

struct ExportRequest {
  std::filesystem::path folder;               // to write
  std::optional<DType> dtype = {};            // a floating type; empty: that of the master weights
  std::uint64_t shard_bytes = kMaxShardBytes; // most bytes of tensors in a file; a larger tensor is alone
  std::string architecture = {};              // empty: the first that can store the model
  std::filesystem::path files = {};           // folder whose tokenizer files are copied; empty: those of the checkpoint
  NewTokenizer tokenizer = {};                // to write instead, if it is not empty
  std::vector<std::filesystem::path> paths = {}; // folders that are searched for plugins first
};

struct ExportedModel {
  std::filesystem::path folder; // as it was requested, without "/" at its end
  std::string architecture;
  std::size_t tensors = 0, shards = 0;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;        // of the tensors
  std::vector<std::string> files; // that were carried along
  std::vector<std::string> notes; // what the user may not expect, a sentence each
};

class ModelExport {
 public:
  /// Checks everything but the bytes of the weights, the output first. `from` must outlive the object.
  ModelExport(checkpoint::TensorReader& from, ExportRequest request);
  /// The refusals for what the format cannot store. write() needs none.
  const Refusals& refusals() const { return refusals_; }
  ExportedModel write(const checkpoint::StopRequest& stop = {});

 private:
  /// A tensor of the format.
  struct Target {
    std::size_t parameter = 0, tensor = 0; // in parameters_, and in its row
    std::size_t shard = 0;
  };

  void read_options();
  void find_model_before();
  void choose_architecture();
  void match_weights();
  void plan_shards();
  const std::string& name_of(const Target& target) const;
  DType dtype_of(const Target& target) const;
  void make_config();
  std::string index(std::uint64_t bytes) const;
  void write_shard(std::size_t shard, const checkpoint::StagedFolder& folder, ExportedModel& out,
                   const checkpoint::StopRequest& stop);

  checkpoint::TensorReader& from_;
  const ExportRequest request_;
  MappedPlugin plugin_;
  OptionTexts options_;
  std::filesystem::path config_before_;                 // config.json of the imported model; may be empty
  const HfArchitecture* architecture_before_ = nullptr; // its architecture
  std::vector<std::string> notes_;
  const HfArchitecture* architecture_ = nullptr;
  std::vector<std::pair<std::string, std::string>> values_; // of config.json
  std::vector<StoredParameter> parameters_;
  std::vector<const checkpoint::SavedTensor*> weights_; // of parameters_
  std::vector<Target> targets_;
  std::size_t shards_ = 1;
  std::string config_; // the text of config.json
  std::filesystem::path files_from_;
  std::vector<std::string> files_; // files in files_from_ that are copied
  Refusals refusals_;
};

} // namespace triax::hf
