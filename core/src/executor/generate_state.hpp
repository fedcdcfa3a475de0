// SPDX-License-Identifier: Apache-2.0
// The state of a rank that generates: stages, weights, the cache of each sequence, tokens and logits. It is constructed
// without memory, planned, and then allocated once.
//
// Threads: the rank's main thread. Ownership: owns all of it; the model must outlive it. Blocking: allocate() and
// load() copy. Errors: Error if the model cannot generate, if its layers do not fit together, or if a program is
// invalid.
//
// A rank has one stage, or those of a training whose weights it reads. Its program runs once for each call: the forward
// of all microbatches, which are b sequences each, of the same rows. Kernels are planned by shape, so a call has one of
// a few numbers of rows (call_sizes()).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/memory.hpp"
#include "executor/rank_stages.hpp"
#include "schedule/assumptions.hpp"
#include "schedule/program.hpp"

namespace triax::executor {

/// A training whose rank also generates. Its weights must exist before allocate(); they are read and not changed. With
/// Sharding::parameters, each call gathers them into the slots of the training.
struct TrainedStages {
  const schedule::StageMap& stage_map;
  const Parameters& parameters;
  std::vector<StageLayers> split; // of all stages
  schedule::Sharding sharding = schedule::Sharding::none;
};

struct GenerateRequest {
  const Model& model;
  LayerContext context; // created for Purpose::generate
  int microbatches = 1;
  schedule::Assumptions assumptions{};    // of the communicators
  std::vector<std::int64_t> split{};      // blocks of each stage; empty: evenly
  const TrainedStages* trained = nullptr; // null: one stage for each rank, and separate weights
};

/// Fills `host` with this rank's part of a parameter, in f32, or f64 if the run computes in f64; shape spec.local,
/// zeros before the call. `name` is that of Parameter.
using WeightSource = std::function<void(const std::string& name, const ParamSpec& spec, const TensorView& host)>;

class GenerateState {
 public:
  explicit GenerateState(const GenerateRequest& request);

  /// Runs each stage once for each call size as a dry run. Only before allocate().
  struct Plan {
    ScratchBytes scratch;
    Refusals refusals;
  };
  Plan plan(KernelSet& kernels);
  void allocate(Device& device, Stream& stream, const ScratchBytes& scratch);
  /// All parameters of this rank, in the order of the model. May be called again, with other weights. Not with the
  /// weights of a training. Allocates the row "loading" of memory() until it returns.
  void load(Device& device, Stream& stream, const WeightSource& source);

  /// Zeros: what earlier sequences have left, such as a NaN, must not reach others.
  void clear_cache(Device& device, Stream& stream);

  const schedule::Program& program() const { return program_; }
  const LayerContext& context() const { return context_; }
  const Parameters& parameters() const { return trained_ ? *trained_ : parameters_; }
  int microbatches() const { return microbatches_; }
  /// Numbers of rows of calls, descending: max_rows, and the powers of two below it.
  std::span<const std::int64_t> call_sizes() const { return call_sizes_; }
  Stage& stage(int index) { return stages_.at(index); }
  void set_rows(std::int64_t count);
  bool reads_tokens() const { return reads_tokens_; }
  bool makes_logits() const { return makes_logits_; }
  bool makes_logits(int stage) const { return stage + 1 == program_.stage_map().stages(); }
  const MicrobatchViews& batch(int microbatch) const { return batches_[static_cast<std::size_t>(microbatch)]; }
  /// Host memory. Tokens i32 [m, rows, b] of a call; logits [m, max_rows, b, V] of all calls of an append.
  const TensorView& host_tokens() const { return host_tokens_; }
  const TensorView& host_logits() const { return host_logits_; }
  std::span<std::byte> scratch() const { return memory_.scratch; }
  /// With what load() needs on such a device.
  std::vector<RankMemory::Row> memory(const ScratchBytes& scratch, DeviceKind device) const;
  std::vector<std::span<std::byte>> blocks() const { return memory_.blocks(); }

 private:
  void assign_memory(RankMemory& memory);
  /// The blocks of load(), of the size of the largest parameter. Sources write into the weights where these are memory
  /// of the host in the type of sources.
  struct LoadingBlocks {
    std::size_t host = 0, device = 0; // bytes
  };
  LoadingBlocks loading_blocks(DeviceKind device) const;

  LayerContext context_;
  int microbatches_;
  std::vector<std::int64_t> call_sizes_;
  schedule::Program program_;
  RankStages stages_;
  Parameters parameters_;
  const Parameters* trained_; // the weights of a training, or null
  bool reads_tokens_, makes_logits_;
  RankMemory memory_;
  std::vector<MicrobatchViews> batches_;
  TensorView host_tokens_, host_logits_;
};

} // namespace triax::executor
