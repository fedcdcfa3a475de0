// SPDX-License-Identifier: Apache-2.0
#include "config/core_keys.hpp"

#include <limits>
#include <variant>

#include "config/byte_size.hpp"
#include "config/derive.hpp"
#include "config/duration.hpp"
#include "triax/plugin.hpp"

namespace triax::config {

namespace {

using Int = std::int64_t;

template <class Member>
void put(Member& member, const OptionValue& value) {
  member = std::get<Member>(value);
}
template <class Value>
void put(PerStage<Value>& member, const OptionValue& value) {
  const auto* of_each = std::get_if<std::vector<Value>>(&value);
  member = of_each ? PerStage<Value>::listed(*of_each) : PerStage<Value>(std::get<Value>(value));
}
void put(int& member, const OptionValue& value) {
  member = static_cast<int>(std::get<Int>(value)); // the key's range is that of int or smaller
}
void put(std::uint64_t& member, const OptionValue& value) {
  member = static_cast<std::uint64_t>(std::get<Int>(value)); // at least 0
}

/// Assigns to run.*Table.*Member.
template <auto Table, auto Member>
void to(RunConfig& run, const OptionValue& value) {
  put(run.*Table.*Member, value);
}
template <auto Member>
void to(RunConfig& run, const OptionValue& value) {
  put(run.*Member, value);
}

/// [loss_scale] has values in fp16 only.
template <auto Member>
void to_loss_scale(RunConfig& run, const OptionValue& value) {
  if (!run.train.loss_scale) run.train.loss_scale.emplace();
  put(*run.train.loss_scale.*Member, value);
}

void set_precision(RunConfig& run, const OptionValue& value) {
  const auto& name = std::get<std::string>(value);
  run.train.master = name == "fp64" ? DType::f64 : DType::f32;
  run.train.compute = name == kScaledPrecision ? DType::f16 : name == "bf16" ? DType::bf16 : run.train.master;
}

/// cross_check() has refused other texts.
void set_time_limit(RunConfig& run, const OptionValue& value) {
  run.train.time_limit_s = seconds_of(std::get<std::string>(value)).value_or(0);
}

/// cross_check() has refused other texts.
void set_activation_budget(RunConfig& run, const OptionValue& value) {
  run.memory.activation_budget = bytes_of(std::get<std::string>(value)).value_or(0);
}

/// Without blocks, the value is the word "auto".
void set_split(RunConfig& run, const OptionValue& value) {
  const auto* blocks = std::get_if<std::vector<Int>>(&value);
  run.parallel.is_split_automatic = !blocks;
  if (blocks) run.parallel.split = *blocks;
}

constexpr double kMany = std::numeric_limits<double>::infinity();
constexpr double kMaxSize = 65536;     // of one axis
constexpr double kMaxBatch = 16777216; // products with axis sizes stay far inside 64 bits
constexpr double kMaxSeconds = 1e8;    // three years; clocks count nanoseconds
constexpr double kMaxVocab = 2147483647;
constexpr double kMaxPrefetch = 1024;
constexpr double kMaxCount = 2147483647;             // of a counter on a device
constexpr double kMaxRate = 1e30;                    // factor of fp32 weights, far inside the range of fp32
constexpr double kMinScale = 1e-9, kMaxScale = 1e30; // factor of fp32 gradients, far inside the range of fp32

constexpr CoreKey kRun[] = {
    {option_path("dir", nullptr, "folder for metrics, resolved.toml and logs"),
     "runs/ and the name of the TOML without .toml, in the working folder; runs/pipe for a TOML from a pipe",
     &to<&RunConfig::folder>},
};

constexpr CoreKey kModel[] = {
    {option_int("vocab", nullptr, 1, kMaxVocab, "number of token ids"), "from data.path's tokenizer file (.json)",
     &to<&RunConfig::vocab>},
};

constexpr CoreKey kParallel[] = {
    {option_int("pipeline", "1", 1, kMaxSize, "p: ranks that share the layers"), nullptr,
     &to<&RunConfig::parallel, &RunConfig::ParallelKeys::pipeline>},
    {option_int("tensor", "1", 1, kMaxSize, "t: ranks that share each layer"), nullptr,
     &to<&RunConfig::parallel, &RunConfig::ParallelKeys::tensor>},
    {option_int("data", nullptr, 1, kMaxSize, "d: copies of the model, each with its part of the batch"),
     "1; if torchrun, mpirun or srun starts the ranks: their number / (pipeline x tensor)",
     &to<&RunConfig::parallel, &RunConfig::ParallelKeys::data>},
    {option_int("chunks", "1", 1, kMaxSize, "v: stages per pipeline rank"), nullptr,
     &to<&RunConfig::parallel, &RunConfig::ParallelKeys::chunks>},
    {option_list(option_int("split", "[]", 0, kMaxSize,
                            "transformer blocks of each stage; empty: split evenly; \"auto\": the split whose "
                            "slowest stage takes least time, counting the embedding and the head too; needs one "
                            "value of memory.recompute for all stages")),
     nullptr, &set_split, false, kAutomaticSplit},
    {option_path("split_cluster", "",
                 "cluster file from which split = \"auto\" and memory.recompute = \"optimal\" take the costs of "
                 "layers; empty: built-in costs, of a "
                 "GPU for kernel sets on GPUs and of a CPU core for others"),
     nullptr, &to<&RunConfig::parallel, &RunConfig::ParallelKeys::split_cluster>},
    {option_bool("scatter_gather", "false",
                 "between stages, each tensor rank sends its part of a tensor, and the receivers gather them"),
     nullptr, &to<&RunConfig::parallel, &RunConfig::ParallelKeys::scatter_gather>},
    {option_bool(
         "sequence", "false",
         "sequence parallelism: norms, dropouts and the residual stream have 1/t of the positions on each tensor "
         "rank"),
     nullptr, &to<&RunConfig::parallel, &RunConfig::ParallelKeys::sequence>},
};

constexpr CoreKey kBatch[] = {
    {option_int("global", nullptr, 1, kMaxBatch, "B: sequences per step, over all ranks"), nullptr,
     &to<&RunConfig::batch, &RunConfig::BatchKeys::global>},
    {option_int("micro", "1", 1, kMaxBatch, "b: sequences per microbatch; m = B / (d x b)"), nullptr,
     &to<&RunConfig::batch, &RunConfig::BatchKeys::micro>},
};

constexpr CoreKey kMemory[] = {
    {option_string(
         "recompute", "none", "none|cheap|full|optimal",
         "cheap: transformer blocks do not keep what they can compute again without matrix products: outputs of norms "
         "and of the MLP's activation; full: they keep their inputs only, and run their forward again before their "
         "backward; optimal: each block recomputes the parts of its forward with which the step takes least time by "
         "the cost model, within activation_budget"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::recompute>, true},
    {option_string("activation_budget", "", nullptr,
                   "with recompute = \"optimal\": memory for the activations of a rank, such as 2GiB: the row "
                   "\"activations\" of triax check is at most that"),
     nullptr, &set_activation_budget},
    {option_int("recompute_layers", "1", 0, kMaxSize,
                "with recompute = \"full\": number of consecutive blocks of a stage that keep one input together: "
                "before the backward of the last of them, the forwards of all of them run again; 0: the number that "
                "needs least memory"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::recompute_layers>, true},
    {option_bool("partition_activations", "false",
                 "with recompute = \"full\": each tensor rank keeps 1/t of the kept input of a recomputed block, and "
                 "the ranks gather the parts before they recompute"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::partition_activations>},
    {option_bool("offload_activations", "false",
                 "with recompute = \"full\": the kept inputs of recomputed blocks are in host memory; they are copied "
                 "there after the forward, and back ahead of their use; no effect where kernels compute on the CPU"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_activations>},
    {option_string(
         "offload", "none", "none|optimizer|disk",
         "where the optimizer's state is kept, and the master weights if they are separate from the working weights; "
         "none: device memory; optimizer: host memory, and the host's cores update the weights; disk: one file per "
         "rank, which each step reads and writes in blocks"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload>},
    {option_path("offload_path", "",
                 "with offload = \"disk\": folder for the ranks' files, which are deleted when the run ends; empty: "
                 "run.dir"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_path>},
    {option_int("offload_buffer_bytes", "8388608", 4096, kMaxCount,
                "with offload = \"disk\": size of each of the three buffers through which the state moves to and "
                "from the file; not used by an optimizer that needs whole parameters: its buffers hold its largest "
                "parameter; with \"optimizer\" on a GPU: bytes of state that the host updates at a time"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_buffer_bytes>},
    {option_string("offload_gradients", "fp32", "fp32|bf16",
                   "with offload = \"optimizer\" on a GPU: the type in which gradients are sent to the host; bf16 "
                   "sends half as much, and rounds them"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_gradients>},
    {option_string("offload_kernels", "kernels-cpu", nullptr,
                   "with offload = \"optimizer\" on a GPU: the kernel set that updates the weights on the host"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_kernels>},
    {option_bool("offload_delayed_update", "false",
                 "with offload = \"optimizer\" on a GPU: the host updates the weights while the GPU computes the next "
                 "step, which reads weights without this update (one-step delayed parameter update)"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_delayed_update>},
    {option_int("offload_warmup_steps", "40", 0, kMaxCount,
                "with offload_delayed_update = true: first steps of the run that wait for their updates"),
     nullptr, &to<&RunConfig::memory, &RunConfig::MemoryKeys::offload_warmup_steps>},
};

constexpr CoreKey kOptimizer[] = {
    {option_float("lr", nullptr, 0, kMaxRate, "learning rate after the warm-up"), nullptr,
     &to<&RunConfig::optimizer_core, &RunConfig::OptimizerKeys::lr>},
    {option_float("weight_decay", "0.1", 0, kMaxRate, "on parameters of two or more dimensions only"), nullptr,
     &to<&RunConfig::optimizer_core, &RunConfig::OptimizerKeys::weight_decay>},
    {option_string(
         "shard", "none", "none|states|gradients|parameters",
         "what the data ranks divide (ZeRO); states: optimizer state and master weights; gradients: these and "
         "the reduced gradients; parameters: these and the working weights, which a rank gathers for a stage "
         "before its use"),
     nullptr, &to<&RunConfig::optimizer_core, &RunConfig::OptimizerKeys::shard>},
    {option_int(
         "prefetch", "1", 0, kMaxPrefetch,
         "with shard = \"parameters\": number of unshard intervals for which a rank gathers weights ahead; a rank "
         "then holds the weights of at most 1 + prefetch stages; 0: a pass waits for its weights"),
     nullptr, &to<&RunConfig::optimizer_core, &RunConfig::OptimizerKeys::prefetch>},
};

constexpr CoreKey kLr[] = {
    {option_string("decay", "constant", "constant|cosine|linear", "how the learning rate falls after the warm-up"),
     nullptr, &to<&RunConfig::lr, &RunConfig::LrKeys::decay>},
    {option_int("warmup_steps", "0", 0, kMany, "steps in which the learning rate rises from 0 to optimizer.lr"),
     nullptr, &to<&RunConfig::lr, &RunConfig::LrKeys::warmup_steps>},
    {option_float("min", "0", 0, kMaxRate, "learning rate at the last step"), nullptr,
     &to<&RunConfig::lr, &RunConfig::LrKeys::min>},
};

constexpr CoreKey kTrain[] = {
    {option_int("steps", nullptr, 1, kMany, "optimizer steps"), nullptr,
     &to<&RunConfig::train, &RunConfig::TrainKeys::steps>},
    {option_int("stop_at", "0", 0, kMany,
                "step after which the run saves a checkpoint and ends early; 0: it ends after train.steps"),
     nullptr, &to<&RunConfig::train, &RunConfig::TrainKeys::stop_at>},
    {option_string("time_limit", "", nullptr,
                   "run time that the batch system allows, such as 3h50m: the run saves a checkpoint and ends before "
                   "this time; empty: no limit"),
     nullptr, &set_time_limit},
    {option_int("seed", "1", 0, kMany, "seed of the initial weights, dropout and the order of samples"), nullptr,
     &to<&RunConfig::train, &RunConfig::TrainKeys::seed>},
    {option_float("clip_grad", "1.0", 0, kMany, "maximum norm of the whole gradient; 0: no clipping"), nullptr,
     &to<&RunConfig::train, &RunConfig::TrainKeys::clip_grad>},
    {option_string(
         "nonfinite", "stop", "stop|skip|rewind",
         "what happens if a loss or gradient is not finite; stop: the run ends; skip: no weight changes in this "
         "step; rewind: as skip, and the run goes back to the last checkpoint and does not reuse the samples since "
         "then"),
     nullptr, &to<&RunConfig::train, &RunConfig::TrainKeys::nonfinite>},
    {option_int("max_rewinds", "3", 1, kMany, "how often nonfinite = \"rewind\" goes back, in one start of the run"),
     nullptr, &to<&RunConfig::train, &RunConfig::TrainKeys::max_rewinds>},
    {option_string("precision", "fp32", "fp32|bf16|fp16|fp64",
                   "type of activations and of the weights that layers read; with bf16 and fp16, gradients, "
                   "optimizer state and master weights stay in fp32"),
     nullptr, &set_precision},
    {option_bool("cuda_graph", "false",
                 "capture the third step as a CUDA graph, and launch it for each later step: less work for the host"),
     nullptr, &to<&RunConfig::train, &RunConfig::TrainKeys::cuda_graph>},
    {option_float("stall_timeout_s", "600", 1, kMaxSeconds,
                  "seconds without progress before the run is stopped; must exceed the longest single operation"),
     nullptr, &to<&RunConfig::train, &RunConfig::TrainKeys::stall_timeout_s>},
};

// No defaults here: derive() sets these keys in fp16 only.
constexpr CoreKey kLossScale[] = {
    {option_float("initial", nullptr, kMinScale, kMaxScale,
                  "initial factor on the gradient of the loss; a power of 2 does not round"),
     "65536 in fp16", &to_loss_scale<&LossScaleKeys::initial>},
    {option_bool("constant", nullptr, "keep the initial scale"), "false in fp16",
     &to_loss_scale<&LossScaleKeys::constant>},
    {option_float("min", nullptr, kMinScale, kMaxScale, "smallest scale"), "1 in fp16",
     &to_loss_scale<&LossScaleKeys::min>},
    {option_int("window_steps", nullptr, 1, kMaxCount,
                "consecutive steps without a skipped step after which the scale doubles"),
     "1000 in fp16", &to_loss_scale<&LossScaleKeys::window_steps>},
    {option_int("hysteresis", nullptr, 1, kMaxCount,
                "skipped steps since the scale last doubled before the scale is halved: the N-th and each later one "
                "halve it"),
     "2 in fp16", &to_loss_scale<&LossScaleKeys::hysteresis>},
};

constexpr CoreKey kData[] = {
    {option_path("path", "", "token files to train on, without .bin and .idx; or several as paths")},
    {option_list(option_path("paths", "[]", "several token files to train on, instead of path"))},
    {option_list(
        option_float("weights", "[]", 0, kMany,
                     "relative weight of each of paths (0 is refused); empty: proportional to its number of tokens"))},
    {option_path("validation", "",
                 "token files to evaluate on, without .bin and .idx; or several as validation_paths")},
    {option_list(option_path("validation_paths", "[]", "several token files to evaluate on, instead of validation"))},
    {option_list(option_float(
        "validation_weights", "[]", 0, kMany,
        "relative weight of each of validation_paths (0 is refused); empty: proportional to its number of tokens"))},
};

constexpr CoreKey kCheckpoint[] = {
    {option_int("every", "0", 0, kMany,
                "steps between two checkpoints; 0: only at the end, and when the run is stopped"),
     nullptr, &to<&RunConfig::checkpoint, &CheckpointKeys::every>},
    {option_int("keep", "2", 1, kMany, "number of newest checkpoints that are kept"), nullptr,
     &to<&RunConfig::checkpoint, &CheckpointKeys::keep>},
    {option_int("keep_every", "0", 0, kMany, "also keep each checkpoint whose step is a multiple of this; 0: none"),
     nullptr, &to<&RunConfig::checkpoint, &CheckpointKeys::keep_every>},
    {option_bool("async", "true", "write checkpoints while training continues, from a copy in the host's memory"),
     nullptr, &to<&RunConfig::checkpoint, &CheckpointKeys::async>},
    {option_string(
         "resume", "auto", "auto|never",
         "auto: continue from the newest checkpoint in run.dir; never: begin at step 1, or with checkpoint.from, "
         "and move the checkpoints of an earlier run aside (--fresh)"),
     nullptr, &to<&RunConfig::checkpoint, &CheckpointKeys::resume>},
    {option_path("from", "", "folder of the checkpoint from which a run begins if run.dir has no checkpoint"), nullptr,
     &to<&RunConfig::checkpoint, &CheckpointKeys::from>},
    {option_string("load", "all", "all|weights",
                   "what is read of checkpoint.from; weights: training begins at step 1 with a new optimizer"),
     nullptr, &to<&RunConfig::checkpoint, &CheckpointKeys::load>},
    {option_string("changed_data", "refuse", "refuse|accept",
                   "what happens if the token files have another content or tokenizer than those of the checkpoint; "
                   "refuse: the run does not start; accept: it continues with the next sample of the new content"),
     nullptr, &to<&RunConfig::checkpoint, &CheckpointKeys::changed_data>},
};

constexpr CoreKey kEval[] = {
    {option_int("every", "0", 0, kMany, "steps between two evaluations; 0: none"), nullptr,
     &to<&RunConfig::eval, &RunConfig::EvalKeys::every>},
    {option_int("batches", "0", 0, kMaxCount,
                "global batches per evaluation; required with eval.every; 0: triax "
                "evaluate uses every sample once"),
     nullptr, &to<&RunConfig::eval, &RunConfig::EvalKeys::batches>},
    {option_string("sample", "", nullptr,
                   "a prompt that each evaluation continues with the current weights; the text is written to the log "
                   "and to the step's record; empty: no text"),
     nullptr, &to<&RunConfig::eval, &RunConfig::EvalKeys::sample>},
    {option_int("sample_tokens", "64", 1, kMaxCount, "maximum number of new tokens of that text"), nullptr,
     &to<&RunConfig::eval, &RunConfig::EvalKeys::sample_tokens>},
    {option_float("sample_temperature", "0.8", 0, 100,
                  "how its tokens are sampled, as in triax generate --temperature; 0: the most probable token"),
     nullptr, &to<&RunConfig::eval, &RunConfig::EvalKeys::sample_temperature>},
};

constexpr CoreKey kLog[] = {
    {option_path("metrics", nullptr, "file of the step records, JSON lines"), "metrics.jsonl in run.dir",
     &to<&RunConfig::log, &RunConfig::LogKeys::metrics>},
    {option_int("every", "1", 1, kMany, "steps between two step records"), nullptr,
     &to<&RunConfig::log, &RunConfig::LogKeys::every>},
    {option_string("level", "info", "trace|debug|info|warn|error", "least severe messages that are logged"), nullptr,
     &to<&RunConfig::log, &RunConfig::LogKeys::level>},
    {option_int("timeline", "0", 0, kMany,
                "step of which every rank records passes, communication and waits in timeline-rank-N.json in run.dir; "
                "0: none"),
     nullptr, &to<&RunConfig::log, &RunConfig::LogKeys::timeline>},
    {option_bool("tensorboard", "false",
                 "also writes the step records as event files for TensorBoard, to the folder tensorboard in run.dir"),
     nullptr, &to<&RunConfig::log, &RunConfig::LogKeys::tensorboard>},
};

constexpr CoreKey kLaunch[] = {
    {option_string("interface", "", nullptr,
                   "interface on which the job server listens, as a name or an address; empty: loopback, or the "
                   "launcher's choice"),
     nullptr, &to<&RunConfig::launch, &LaunchKeys::interface>},
    {option_int("port", "0", 0, 65535,
                "port on which the job server listens; 0: a free port, or the launcher's choice"),
     nullptr, &to<&RunConfig::launch, &LaunchKeys::port>},
    {option_float("start_timeout_s", "300", 1, kMaxSeconds,
                  "startup timeout: seconds until all ranks must have joined"),
     nullptr, &to<&RunConfig::launch, &LaunchKeys::start_timeout_s>},
    {option_path("token_file", "", "file with the job token, instead of TRIAX_JOB_TOKEN"), nullptr,
     &to<&RunConfig::launch, &LaunchKeys::token_file>},
};

constexpr CoreKey kPlugins[] = {
    {option_list(option_path(
        "path", "[]", "folders to search for plugins, before TRIAX_PLUGIN_PATH and the plugin folder of Triax"))},
};

constexpr CoreTable kTables[] = {
    {"run", "files of the run", nullptr, kRun},
    {"model", "the model to train", "model", kModel},
    {"parallel", "how the model is distributed over the ranks", nullptr, kParallel},
    {"batch", "sequences per step", nullptr, kBatch},
    {"schedule", "the order of forward and backward passes", "scheduler", {}},
    {"comm", "how ranks communicate", "communicator", {}},
    {"comm.tensor", "communication on the tensor axis only", "communicator", {}, true},
    {"comm.pipeline", "communication on the pipeline axis only", "communicator", {}, true},
    {"comm.data", "communication on the data axis only", "communicator", {}, true},
    {"kernels", "the kernel set that computes", "kernels", {}},
    {"memory", "what is kept in memory, and what is computed again", nullptr, kMemory},
    {"optimizer", "how weights are updated", "optimizer", kOptimizer},
    {"lr", "the learning rate over the steps", nullptr, kLr},
    {"train", "the training loop", nullptr, kTrain},
    {"loss_scale", "loss scaling, which keeps small gradients from vanishing; only with train.precision = \"fp16\"",
     nullptr, kLossScale},
    {kDataTable, "the training data", nullptr, kData},
    {"eval", "validation during training", nullptr, kEval},
    {"checkpoint", "saving and resuming", nullptr, kCheckpoint},
    {"log", "metrics, log and timelines", nullptr, kLog},
    {"launch", "how ranks that are processes connect", nullptr, kLaunch},
    {"plugins", "plugin search", nullptr, kPlugins},
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
