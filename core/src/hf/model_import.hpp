// SPDX-License-Identifier: Apache-2.0
// A model's folder becomes a checkpoint with weights only, and the TOML of a run that begins with it.
//
// Threads: the main thread. Blocking: reads the folder, loads model plugins, writes, and waits for the disk. Memory:
// below the largest tensor and some buffers. Errors: Error with the file. Both outputs have temporary names until they
// are complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/stop_request.hpp"
#include "hf/grouped_refusals.hpp"
#include "hf/mapped_model.hpp"
#include "hf/model_tensors.hpp"

namespace triax::hf {

struct ImportRequest {
  std::filesystem::path folder, output, run;     // model, checkpoint and TOML
  std::string model = {};                        // plugin; empty: the one that has the architecture
  std::string data = {};                         // prefix of token files for the TOML; may be empty
  std::vector<std::filesystem::path> paths = {}; // folders that are searched for plugins first
  std::set<std::string> ignored = {};            // keys of config.json
};

struct ImportedModel {
  std::string architecture, plugin;
  std::size_t tensors = 0;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;        // of the weights
  std::vector<std::string> files; // that are carried along
};

class ModelImport {
 public:
  /// Checks everything but the bytes of the weights. Throws Error for what cannot be read.
  explicit ModelImport(ImportRequest request);
  /// What the folder asks for and the model cannot do, and tensors that do not fit. write() needs none.
  const Refusals& refusals() const { return refusals_; }
  ImportedModel write(const checkpoint::StopRequest& stop = {});

 private:
  struct Source {
    std::vector<const ModelTensors::Tensor*> tensors; // of a parameter
  };

  void choose_plugin(const ModelConfig& config);
  void match_tensors();
  void check_tensor(const StoredParameter& parameter, std::size_t index, const ModelTensors::Tensor& tensor,
                    GroupedRefusals& refused) const;
  void refuse_other_tensors(const std::set<std::string>& used, GroupedRefusals& refused) const;
  const ModelTensors::Tensor* find_tensor(const std::string& name) const;
  void check_copies(const checkpoint::StopRequest& stop) const;
  checkpoint::Manifest manifest() const;
  std::string toml() const;

  const ImportRequest request_;
  MappedPlugin plugin_;
  const HfArchitecture* architecture_ = nullptr;
  OptionTexts options_;
  std::vector<StoredParameter> parameters_;
  std::unique_ptr<ModelTensors> tensors_;
  std::vector<Source> sources_; // of parameters_
  Refusals refusals_;
};

} // namespace triax::hf
