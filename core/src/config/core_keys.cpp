// SPDX-License-Identifier: Apache-2.0
#include "config/core_keys.hpp"

#include <limits>

#include "triax/plugin.hpp"

namespace triax::config {

namespace {

constexpr double kMany = std::numeric_limits<double>::infinity();
constexpr double kMaxSize = 65536;     // of one axis
constexpr double kMaxBatch = 16777216; // products with axis sizes stay far inside 64 bits
constexpr double kMaxSeconds = 1e8;    // three years; clocks count nanoseconds
constexpr double kMaxVocab = 2147483647;
constexpr double kMaxCount = 2147483647;             // of a counter on a device
constexpr double kMaxRate = 1e30;                    // factor of fp32 weights, far inside the range of fp32
constexpr double kMinScale = 1e-9, kMaxScale = 1e30; // factor of fp32 gradients, far inside the range of fp32

constexpr CoreKey kRun[] = {
    {option_path("dir", nullptr, "folder of metrics, resolved.toml and logs"),
     "runs/ and the name of the TOML without .toml, in the working folder; runs/pipe for a TOML from a pipe"},
};

constexpr CoreKey kModel[] = {
    {option_int("vocab", nullptr, 1, kMaxVocab, "number of token ids"), "from data.path's tokenizer file (.json)"},
};

constexpr CoreKey kParallel[] = {
    {option_int("pipeline", "1", 1, kMaxSize, "p: ranks that share the layers")},
    {option_int("tensor", "1", 1, kMaxSize, "t: ranks that share each layer")},
    {option_int("data", nullptr, 1, kMaxSize, "d: copies of the model, each with its part of the batch"),
     "number of ranks / (pipeline x tensor)"},
    {option_int("chunks", "1", 1, kMaxSize, "v: stages per pipeline rank")},
    {option_list(
        option_int("split", "[]", 0, kMaxSize, "transformer blocks of each stage; empty: as even as it goes"))},
    {option_bool("scatter_gather", "false",
                 "between stages, each tensor rank sends its part of a tensor, and the receivers gather them")},
};

constexpr CoreKey kBatch[] = {
    {option_int("global", nullptr, 1, kMaxBatch, "B: sequences per step, over all ranks")},
    {option_int("micro", "1", 1, kMaxBatch, "b: sequences per microbatch; m = B / (d x b)")},
};

constexpr CoreKey kOptimizer[] = {
    {option_float("lr", nullptr, 0, kMaxRate, "learning rate after the warm-up")},
    {option_float("weight_decay", "0.1", 0, kMaxRate, "on parameters of two or more dimensions only")},
};

constexpr CoreKey kLr[] = {
    {option_string("decay", "constant", "constant|cosine|linear", "how the learning rate falls after the warm-up")},
    {option_int("warmup_steps", "0", 0, kMany, "steps in which it rises from 0 to optimizer.lr")},
    {option_float("min", "0", 0, kMaxRate, "where it ends at the last step")},
};

constexpr CoreKey kTrain[] = {
    {option_int("steps", nullptr, 1, kMany, "optimizer steps")},
    {option_int("seed", "1", 0, kMany, "of initial weights, dropout and the order of samples")},
    {option_float("clip_grad", "1.0", 0, kMany, "largest norm of the whole gradient; 0: no clipping")},
    {option_string("precision", "fp32", "fp32|bf16|fp16|fp64",
                   "type of activations and of the weights that layers read; with bf16 and fp16, gradients, the "
                   "optimizer and its weights stay in fp32")},
    {option_bool("cuda_graph", "false",
                 "record the third step on the GPU, and launch it again for each later one: less work for the host")},
    {option_float("stall_timeout_s", "600", 1, kMaxSeconds,
                  "seconds without progress before the run is stopped; has to exceed the longest single operation")},
};

// No defaults here: derive() sets these keys in fp16 only.
constexpr CoreKey kLossScale[] = {
    {option_float("initial", nullptr, kMinScale, kMaxScale,
                  "what the loss gradient is multiplied by at first; a power of 2 rounds nothing"),
     "65536 in fp16"},
    {option_bool("constant", nullptr, "keep that scale"), "false in fp16"},
    {option_float("min", nullptr, kMinScale, kMaxScale, "where it stops falling"), "1 in fp16"},
    {option_int("window_steps", nullptr, 1, kMaxCount, "steps taken in a row after which it doubles"), "1000 in fp16"},
    {option_int("hysteresis", nullptr, 1, kMaxCount,
                "since it doubled last, the skipped step of this number and each later one halve it"),
     "2 in fp16"},
};

constexpr CoreKey kData[] = {
    {option_path("path", "", "token files to train on, without .bin and .idx; or several as paths")},
    {option_list(option_path("paths", "[]", "several token files to train on, in place of path"))},
    {option_list(
        option_float("weights", "[]", 0, kMany,
                     "how much comes from each of paths, in any unit, each above 0; empty: as much as it has tokens"))},
    {option_path("validation", "",
                 "token files to evaluate on, without .bin and .idx; or several as validation_paths")},
    {option_list(option_path("validation_paths", "[]", "several token files to evaluate on, in place of validation"))},
    {option_list(
        option_float("validation_weights", "[]", 0, kMany,
                     "how much comes from each of validation_paths, each above 0; empty: as much as it has tokens"))},
};

constexpr CoreKey kEval[] = {
    {option_int("every", "0", 0, kMany, "steps between two evaluations; 0: none")},
    {option_int("batches", "0", 0, kMany, "global batches of one evaluation")},
};

constexpr CoreKey kLog[] = {
    {option_path("metrics", nullptr, "file of the step records, JSON lines"), "metrics.jsonl in run.dir"},
    {option_int("every", "1", 1, kMany, "steps between two step records")},
    {option_string("level", "info", "trace|debug|info|warn|error", "what the log tells")},
    {option_int("timeline", "0", 0, kMany,
                "a step that every rank records, with passes, communication and waits, in timeline-rank-N.json in "
                "run.dir; 0: none")},
};

constexpr CoreKey kLaunch[] = {
    {option_string("interface", "", nullptr,
                   "where the job's server listens: an interface's name or number; empty: loopback, "
                   "or what a launcher named")},
    {option_int("port", "0", 0, 65535,
                "where the job's server listens; 0: one that is free, or what a launcher named")},
    {option_float("start_timeout_s", "300", 1, kMaxSeconds, "seconds until all ranks must have come")},
    {option_path("token_file", "", "file with the job's secret, in place of TRIAX_JOB_TOKEN")},
};

constexpr CoreKey kPlugins[] = {
    {option_list(
        option_path("path", "[]", "folders to look for plugins in, before TRIAX_PLUGIN_PATH and the engine's"))},
};

constexpr CoreTable kTables[] = {
    {"run", "where the run's files go", nullptr, kRun},
    {"model", "what is trained", "model", kModel},
    {"parallel", "how the model is laid over the ranks", nullptr, kParallel},
    {"batch", "sequences per step", nullptr, kBatch},
    {"schedule", "the order of forward and backward passes", "scheduler", {}},
    {"comm", "how ranks communicate", "communicator", {}},
    {"comm.tensor", "the tensor axis alone", "communicator", {}, true},
    {"comm.pipeline", "the pipeline axis alone", "communicator", {}, true},
    {"comm.data", "the data axis alone", "communicator", {}, true},
    {"kernels", "what computes", "kernels", {}},
    {"optimizer", "how weights are updated", "optimizer", kOptimizer},
    {"lr", "the learning rate over the steps", nullptr, kLr},
    {"train", "the training loop", nullptr, kTrain},
    {"loss_scale", "what keeps small gradients from vanishing; with train.precision = \"fp16\" alone", nullptr,
     kLossScale},
    {"data", "what it is trained on", nullptr, kData},
    {"eval", "validation during training", nullptr, kEval},
    {"log", "what a run writes down", nullptr, kLog},
    {"launch", "how ranks that are processes find one another", nullptr, kLaunch},
    {"plugins", "where plugins are found", nullptr, kPlugins},
};

} // namespace

std::span<const CoreTable> core_tables() {
  return kTables;
}

const CoreTable* find_core_table(std::string_view name) {
  for (const CoreTable& table : kTables) {
    if (name == table.name) return &table;
  }
  return nullptr;
}

} // namespace triax::config
