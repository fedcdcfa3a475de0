// SPDX-License-Identifier: Apache-2.0
// Trains one case with its ranks as threads of this process, and keeps all results to compare.
//
// Threads: train() starts one thread per rank and joins them all. Blocking: until the ranks have finished; a rank that
// fails ends the others. Errors: std::runtime_error with the first failure.
// The model is small but has dropout, an odd vocabulary (so that it is padded over tensor ranks), and four heads of two
// columns.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "equality/cases.hpp"
#include "executor/host_update.hpp"
#include "report/step_record.hpp"
#include "train/preflight.hpp"
#include "triax/model.hpp"
#include "triax/scheduler.hpp"

namespace triax::equality {

/// Sizes of the model.
inline constexpr std::int64_t kHidden = 8, kHeads = 4, kHeadDim = kHidden / kHeads, kVocab = 13;

/// Settings of the training that are not part of the case.
struct Training {
  std::string model = "model-gpt"; // or model-llama, which has no dropout
  std::string optimizer = "optim-adamw";
  double lr = 1e-2;
  double dropout = 0.1;
  double clip_grad = 0;
  double weight_decay = 0.1;
  std::string precision = "fp32";
  double initial_scale = 0; // fp16 loss scale, with a hysteresis of 1; 0: neither key is set
  std::string comm = "comm-local";
  std::string pipeline_comm{};  // of the pipeline axis; empty: the same
  std::string inner_kernels{};  // that kernels-fake-cuda computes with; empty: the reference
  std::string sent_gradients{}; // memory.offload_gradients; empty: not set
  bool cuda_graph = false;
  int steps = 3;
  /// memory.offload_warmup_steps of delayed updates; -1: updates are not delayed. Where the device updates, or with
  /// `delay_by_hand`, the harness delays the weights that layers read.
  int warmup_steps = -1;
  bool delay_by_hand = false;
  int scale_window = 0; // loss_scale.window_steps; 0: not set
  /// Every step gets the samples of the first, with new numbers and so with other dropout. The loss then has no other
  /// reason to rise.
  bool same_samples = false;
};

struct KeptParameter {
  ParamSpec spec;
  DType dtype = DType::f32;
  std::vector<std::byte> weights, gradient; // as stored; the gradient of the last step
  std::vector<std::byte> working;           // the weights that layers read
  /// Elements of the parameter at which `weights`, `gradient` and `working` begin.
  std::int64_t first = 0, gradient_first = 0, working_first = 0;
  DType working_dtype = DType::f32;
};

struct KeptRank {
  std::vector<double> losses, norms; // by step
  std::vector<double> scales;        // by step, in fp16
  std::vector<bool> skipped;         // by step
  double held_out = 0;               // loss on held-out samples at the end
  std::map<std::string, KeptParameter> parameters;
  std::vector<std::vector<report::GroupTraffic>> traffic; // totals after each step
  std::vector<executor::HostTraffic> host_traffic;        // the same, of optimizer steps
};

/// The check before such a run.
train::Preflight check(const Case& run, const Training& training);

/// Results by rank.
using Ranks = std::vector<KeptRank>;

/// `rows`, if given, replace the scheduler's.
Ranks train(const Case& run, const Training& training, const Schedule* rows = nullptr);

} // namespace triax::equality
