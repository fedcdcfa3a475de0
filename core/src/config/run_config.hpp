// SPDX-License-Identifier: Apache-2.0
// A run as its TOML describes it, resolved: what every other room reads.
//
// Threads: read-only after it is made. Ownership: owns everything. The plugins named are found, loaded, and their
// options checked; nothing has been created yet. Blocking: never. Errors: none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/blended_dataset.hpp"
#include "plugin/loader.hpp"
#include "triax/options.hpp"
#include "triax/tensor.hpp"

namespace triax::config {

/// A plugin chosen in a table, with the values of its options.
struct PluginChoice {
  std::string table; // "model", "comm", "comm.tensor"...
  std::string name;  // "model-gpt"
  const plugin::Library* library = nullptr;
  Options options;
  std::string named_in; // the table whose `plugin` it is: "comm" also for a [comm.tensor] that inherits
  std::vector<std::filesystem::path> shadowed; // files of the same name in later folders, which are not used
};

/// [launch]
struct LaunchKeys {
  std::string interface; // empty: loopback, or what a launcher named
  int port = 0;          // 0: free, or what a launcher named
  double start_timeout_s = 300;
  std::filesystem::path token_file; // may be empty
};

/// [loss_scale], of a run in fp16.
struct LossScaleKeys {
  double initial = 65536;
  bool constant = false; // then the others have no meaning
  double min = 1;
  std::int64_t window_steps = 1000, hysteresis = 2;
};

struct RunConfig {
  std::filesystem::path file;   // the TOML
  std::filesystem::path folder; // [run] dir, absolute

  PluginChoice model, schedule, kernels, optimizer;
  std::map<std::string, PluginChoice> comm; // by axis: "tensor" "data" "pipeline", each resolved from [comm]

  struct {
    int pipeline = 1, tensor = 1, data = 1, chunks = 1;
    std::vector<std::int64_t> split; // transformer blocks per stage; empty: even
    bool scatter_gather = false;     // boundary tensors in parts, of no effect where tensor is 1
  } parallel;
  struct {
    std::int64_t global = 1, micro = 1;
  } batch;
  struct {
    double lr = 0, weight_decay = 0;
  } optimizer_core;
  struct {
    std::string decay = "constant"; // constant | cosine | linear
    std::int64_t warmup_steps = 0;
    double min = 0;
  } lr;
  struct {
    std::int64_t steps = 0;
    std::uint64_t seed = 0;
    double clip_grad = 0;                            // 0: off
    DType compute = DType::f32, master = DType::f32; // from `precision`
    bool cuda_graph = false;
    double stall_timeout_s = 0;
    std::optional<LossScaleKeys> loss_scale; // in fp16
  } train;
  struct {
    data::Corpora training, validation; // validation may be none
  } data;
  std::int64_t vocab = 0; // from [model] vocab, else from the tokenizer file beside the data
  struct {
    std::int64_t every = 0, batches = 0; // every 0: off
  } eval;
  struct {
    std::filesystem::path metrics; // the file
    std::int64_t every = 1;
    std::string level = "info";
    std::int64_t timeline = 0; // a step; 0: none
  } log;
  LaunchKeys launch;

  /// m = B / (d*b)
  std::int64_t microbatches() const { return batch.global / (parallel.data * batch.micro); }
};

} // namespace triax::config
