// SPDX-License-Identifier: Apache-2.0
// A model's folder becomes a checkpoint with weights only, and the TOML of a run that begins with it.
//
// Threads: the main thread. Blocking: reads the folder, loads model plugins, writes, and waits for the disk. Memory:
// below the largest tensor and some buffers. Errors: Error with the file. Both outputs have temporary names until they
// are complete, and there are both or none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/stop_request.hpp"
#include "hf/mapped_model.hpp"
#include "hf/model_tensors.hpp"
#include "hf/tensor_match.hpp"
#include "triax/error.hpp"

namespace triax::hf {

struct ImportRequest {
  std::filesystem::path folder, output, run;     // model, checkpoint and TOML
  std::string model = {};                        // plugin; empty: the one that has the architecture
  std::string data = {};                         // prefix of token files for the TOML; may be empty
  std::vector<std::filesystem::path> paths = {}; // folders that are searched for plugins first
  std::set<std::string> ignored = {};            // keys of config.json
};

struct ImportedModel {
  std::filesystem::path output; // as it was requested, without "/" at its end
  std::string architecture, plugin;
  std::size_t tensors = 0;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;        // of the weights
  std::vector<std::string> files; // that are carried along
  /// Tensors with values that are NaN or infinite, which are kept: the first, and the number of the others.
  std::optional<Error> nonfinite = {};
};

class ModelImport {
 public:
  /// Checks everything but the bytes of the weights, the outputs first. Throws Error for what cannot be read.
  explicit ModelImport(ImportRequest request);
  /// The refusals for what the model cannot do, and for tensors that do not fit. write() needs none.
  const Refusals& refusals() const { return refusals_; }
  ImportedModel write(const checkpoint::StopRequest& stop = {});

 private:
  void read_config();
  void read_tensors();
  void match_model();
  bool match_another(const MappedModel& model);
  checkpoint::Manifest manifest() const;
  std::string toml() const;

  const ImportRequest request_;
  ModelConfig config_;
  MappedPlugin plugin_;
  const HfArchitecture* architecture_ = nullptr; // of plugin_
  OptionTexts options_;
  std::vector<StoredParameter> parameters_;
  std::unique_ptr<ModelTensors> tensors_; // null if they cannot be read
  TensorMatch match_;
  std::vector<std::string> files_; // that are carried along
  Refusals refusals_;
};

} // namespace triax::hf
