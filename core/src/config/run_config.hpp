// SPDX-License-Identifier: Apache-2.0
// The resolved configuration of a run, which all other modules read.
//
// Threads: read-only after construction. Ownership: owns all values.
//
// The named plugins are loaded and their options are checked; their objects do not exist yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/per_stage.hpp"
#include "config/run_files.hpp"
#include "data/blended_dataset.hpp"
#include "plugin/loader.hpp"
#include "triax/options.hpp"
#include "triax/recompute.hpp"
#include "triax/tensor.hpp"

namespace triax::config {

/// A plugin chosen in a table, with the values of its options.
struct PluginChoice {
  std::string table; // "model", "comm", "comm.tensor"...
  std::string name;  // "model-gpt"
  const plugin::Library* library = nullptr;
  Options options;
  std::string named_in; // the table whose key `plugin` applies: "comm" also for a [comm.tensor] that inherits
  std::vector<std::filesystem::path> shadowed;    // files with the same name in later folders, which are not used
  std::vector<plugin::SearchFolder> folders = {}; // where it finds a plugin that it wraps; empty: as without a TOML
};

/// [launch]
struct LaunchKeys {
  std::string interface; // empty: loopback, or the interface that the launcher names
  int port = 0;          // 0: any free port, or the port that the launcher names
  double start_timeout_s = 300;
  std::filesystem::path token_file; // may be empty
};

/// [loss_scale], in fp16 only.
struct LossScaleKeys {
  double initial = 65536;
  bool constant = false; // if set, min, window_steps and hysteresis do not apply
  double min = 1;
  std::int64_t window_steps = 1000, hysteresis = 2;
};

/// [checkpoint]
struct CheckpointKeys {
  std::int64_t every = 0;              // steps; 0: only at the end, and when the run is stopped
  std::int64_t keep = 2;               // newest ones
  std::int64_t keep_every = 0;         // also those whose step is a multiple; 0: none
  bool async = true;                   // write while training continues
  std::string resume = "auto";         // auto | never
  std::filesystem::path from = {};     // a checkpoint to begin with, if the run has none; may be empty
  std::string load = "all";            // all | weights: what is read of `from`
  std::string changed_data = "refuse"; // refuse | accept
};

/// How far the time of the slowest stage is above the mean of all stages, as a fraction of the mean.
struct SplitExcess {
  double even = 0, automatic = 0;
};

/// Sizes of a run that generates text.
struct GenerateSizes {
  int samples = 1;            // sequences that grow together
  std::int64_t positions = 0; // tokens of each, at most those of the model; 0: as many
  std::int64_t max_rows = 0;  // tokens of the largest call; 0: a few
};

struct RunConfig {
  std::filesystem::path file;   // the TOML
  std::filesystem::path folder; // [run] dir, absolute
  /// Does not train: evaluates data.validation with the weights of a checkpoint, and writes no file
  /// (Purpose::evaluate), or generates text with them (Purpose::generate).
  bool evaluates = false;
  std::optional<GenerateSizes> generate; // with Purpose::generate

  PluginChoice model, schedule, kernels, optimizer;
  std::map<std::string, PluginChoice> comm; // by axis: "tensor" "data" "pipeline"; [comm] is the default

  struct ParallelKeys {
    int pipeline = 1, tensor = 1, data = 1, chunks = 1;
    std::vector<std::int64_t> split;     // transformer blocks per stage; empty: even
    bool is_split_automatic = false;     // parallel.split = "auto"; plan::resolve_split() sets `split` and `excess`
    std::filesystem::path split_cluster; // whose costs it balances; may be empty
    std::optional<SplitExcess> excess;   // set if the split is automatic
    bool scatter_gather = false;         // each tensor rank sends 1/t of a boundary; no effect if tensor is 1
    bool sequence = false;               // sequence parallelism over the tensor ranks; no effect if tensor is 1
  } parallel;
  struct BatchKeys {
    std::int64_t global = 1, micro = 1;
  } batch;
  struct MemoryKeys {
    PerStage<std::string> recompute{"none"}; // none | cheap | full | optimal
    std::uint64_t activation_budget = 0;     // bytes of the activations of a rank that has stages with "optimal"
    /// Blocks that keep one input together; 0: the number that needs least memory.
    PerStage<std::int64_t> recompute_layers{1};
    bool partition_activations = false; // kept inputs over the tensor ranks; no effect if tensor is 1
    bool offload_activations = false;   // kept inputs in host memory; no effect on the host device
    std::string offload = "none";       // none | optimizer | disk: where the optimizer's state is
    std::filesystem::path offload_path; // folder of files with it; empty: run.dir
    std::uint64_t offload_buffer_bytes = 8388608;
    std::string offload_gradients = "fp32";      // fp32 | bf16: what a GPU sends to the host that updates
    std::string offload_kernels = "kernels-cpu"; // name of the kernel set of that host
    bool offload_delayed_update = false;         // that host updates while the next step computes
    std::int64_t offload_warmup_steps = 40;      // before the first such update
    std::optional<PluginChoice> host_kernels;    // this kernel set; only with offload = "optimizer"
    Recompute recompute_of(int stage) const {
      for (const Recompute value : kRecomputes)
        if (name_of(value) == recompute.of(stage)) return value;
      return Recompute::none; // the table of keys refuses other names
    }
  } memory;
  struct OptimizerKeys {
    double lr = 0, weight_decay = 0;
    /// none | states | gradients | parameters: what the data ranks divide; no effect if data is 1.
    std::string shard = "none";
    std::int64_t prefetch = 1; // with sharded parameters: unshard intervals ahead for which weights are gathered
  } optimizer_core;
  struct LrKeys {
    std::string decay = "constant"; // constant | cosine | linear
    std::int64_t warmup_steps = 0;
    double min = 0;
  } lr;
  struct TrainKeys {
    std::int64_t steps = 0;
    std::int64_t stop_at = 0; // 0: off
    double time_limit_s = 0;  // 0: none
    std::uint64_t seed = 0;
    double clip_grad = 0;           // 0: off
    std::string nonfinite = "stop"; // stop | skip | rewind
    std::int64_t max_rewinds = 0;
    DType compute = DType::f32, master = DType::f32; // from `precision`
    bool cuda_graph = false;
    double stall_timeout_s = 0;
    std::optional<LossScaleKeys> loss_scale; // in fp16 only
  } train;
  struct DataKeys {
    data::Corpora training, validation; // validation may be empty
  } data;
  std::int64_t vocab = 0; // from [model] vocab, else from the tokenizer file of the data
  struct EvalKeys {
    std::int64_t every = 0, batches = 0; // every 0: off
    std::string sample;                  // the prompt; empty: none
    std::int64_t sample_tokens = 64;
    double sample_temperature = 0.8;
  } eval;
  struct LogKeys {
    std::filesystem::path metrics;
    std::int64_t every = 1;
    std::string level = "info";
    std::int64_t timeline = 0; // the step to record; 0: none
    bool tensorboard = false;
  } log;
  LaunchKeys launch;
  CheckpointKeys checkpoint;
  std::map<std::string, std::string> values; // of all keys, as in resolved.toml
  std::set<std::string> replaced;            // keys that files set, with other values than flags

  /// Checkpoints are folders in it.
  std::filesystem::path checkpoints() const { return folder / kCheckpointFolder; }
  /// The plugins and what the run uses them for: "model", "schedule", "comm.tensor" ..., "kernels", "optimizer".
  std::vector<std::pair<std::string, const PluginChoice*>> plugins() const {
    std::vector<std::pair<std::string, const PluginChoice*>> out = {{"model", &model}, {"schedule", &schedule}};
    for (const auto& [axis, choice] : comm) out.emplace_back("comm." + axis, &choice);
    out.emplace_back("kernels", &kernels);
    out.emplace_back("optimizer", &optimizer);
    return out;
  }
  /// The first use of a plugin; null for a plugin that the run does not name.
  const PluginChoice* find_plugin(const std::string& name) const {
    for (const auto& [use, choice] : plugins())
      if (choice->name == name) return choice;
    return nullptr;
  }
  /// m = B / (d*b)
  std::int64_t microbatches() const { return batch.global / (parallel.data * batch.micro); }
};

} // namespace triax::config
