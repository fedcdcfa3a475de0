// SPDX-License-Identifier: Apache-2.0
// A tiny run of a real model on kernels-reference, from its own TOML, which each test modifies.
//
// Threads: one. Ownership: owns its folder; destroy its ranks first. For programs of triax_add_test with the plugins'
// targets under DEPENDS.
#pragma once

#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "control/job_local_store.hpp"
#include "plan/stage_split.hpp"
#include "support/temp_folder.hpp"
#include "train/plugins.hpp"
#include "train/training_rank.hpp"

namespace triax::test {

/// Tokens that depend on the sample number, in a pattern that a model can learn.
class TinySource : public executor::BatchSource {
 public:
  explicit TinySource(std::int32_t vocab = 13) : vocab_(vocab) {}
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    const std::int64_t length = tokens.size(0), micro = tokens.size(1);
    for (std::int64_t i = 0; i < micro; ++i)
      for (std::int64_t s = 0; s < length; ++s) {
        tokens.as<std::int32_t>()[s * micro + i] = token(samples[static_cast<std::size_t>(i)], s);
        targets.as<std::int32_t>()[s * micro + i] = token(samples[static_cast<std::size_t>(i)], s + 1);
      }
  }

 private:
  std::int32_t token(std::int64_t sample, std::int64_t position) const {
    return static_cast<std::int32_t>((sample * sample + 3 * position) % vocab_);
  }
  std::int32_t vocab_;
};

class TinyRun {
 public:
  TinyRun() {
    for (const char* file : {"text.bin", "text.idx"}) write_file(folder_ / file, "");
  }

  /// TOML values by full key.
  std::map<std::string, std::string> keys = {{"model.plugin", "\"model-gpt\""},
                                             {"model.layers", "2"},
                                             {"model.hidden", "8"},
                                             {"model.heads", "2"},
                                             {"model.sequence", "6"},
                                             {"model.vocab", "13"},
                                             {"model.dropout", "0.1"},
                                             {"parallel.data", "1"},
                                             {"batch.global", "4"},
                                             {"batch.micro", "1"},
                                             {"schedule.plugin", "\"sched-gpipe\""},
                                             {"comm.plugin", "\"comm-local\""},
                                             {"kernels.plugin", "\"kernels-reference\""},
                                             {"optimizer.plugin", "\"optim-adamw\""},
                                             {"optimizer.lr", "1e-2"},
                                             {"train.steps", "6"},
                                             {"train.stall_timeout_s", "60"},
                                             {"data.path", "\"text\""},
                                             {"eval.batches", "1"},
                                             {"run.dir", "\"run\""}};

  /// A model-llama with all of its options in place of model-gpt: two query heads for each key head, biases, norms of
  /// heads, scaled rotary positions, a tied head.
  void use_llama(std::int64_t kv_heads) {
    keys.erase("model.dropout");
    keys["model.plugin"] = "\"model-llama\"";
    keys["model.heads"] = std::to_string(2 * kv_heads);
    keys["model.kv_heads"] = std::to_string(kv_heads);
    keys["model.head_size"] = "4";
    keys["model.inner"] = "12";
    keys["model.rope_scaling"] = "\"llama3\"";
    keys["model.rope_original_sequence"] = "16";
    for (const char* key : {"model.qkv_bias", "model.qk_norm", "model.tied"}) keys[key] = "true";
  }

  config::LoadResult load() const {
    std::map<std::string, std::string> tables;
    for (const auto& [key, value] : keys) {
      const std::size_t dot = key.rfind('.');
      tables[key.substr(0, dot)] += key.substr(dot + 1) + " = " + value + "\n";
    }
    std::string toml;
    for (const auto& [table, lines] : tables) toml += "[" + table + "]\n" + lines;
    write_file(folder_ / "run.toml", toml);
    config::LoadResult out = config::load(folder_ / "run.toml", {});
    plan::resolve_split(out, null_log());
    return out;
  }
  /// Throws the error messages, if there are any.
  config::RunConfig config() const {
    const config::LoadResult loaded = load();
    std::string refused;
    for (const config::Diagnostic& refusal : loaded.refusals) refused += refusal.text + "\n";
    if (!loaded.run) throw std::runtime_error(refused);
    return *loaded.run;
  }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

/// The only rank of a TinyRun.
class TinyRank {
 public:
  explicit TinyRank(const config::RunConfig& config, train::RankOptions options = {}) : config_(config) {
    if (!options.training) options.training = &source_;
    if (!options.held_out) options.held_out = &source_;
    rank_.emplace(config_, layout_, 0, store_, null_log(), options);
  }
  explicit TinyRank(const TinyRun& run, const train::RankOptions& options = {}) : TinyRank(run.config(), options) {}
  train::Rank& operator*() { return *rank_; }
  train::Rank* operator->() { return &*rank_; }

 private:
  config::RunConfig config_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  control::LocalStore store_;
  TinySource source_;
  std::optional<train::Rank> rank_;
};

/// Results of a training, to compare bits.
struct Trace {
  std::vector<double> losses, norms;
  std::vector<std::byte> weights, gradients; // after the last step
  bool operator==(const Trace&) const = default;
};

inline void append(std::vector<std::byte>& to, const TensorView& view) {
  const auto* bytes = view.as<std::byte>();
  to.insert(to.end(), bytes, bytes + view.bytes());
}

/// For a device whose memory the host may not be able to access.
inline void append(std::vector<std::byte>& to, const TensorView& view, Device& device) {
  if (device.kind() == DeviceKind::host) return append(to, view);
  const std::unique_ptr<Memory> pinned = device.allocate(view.bytes(), MemoryKind::pinned);
  const std::unique_ptr<Stream> stream = device.make_stream("reading");
  const TensorView read(pinned->data(), view.dtype(), view.shape());
  device.download(read, view, *stream);
  device.wait(stream->record(), deadline_in(60));
  append(to, read);
}

/// The master weights of a parameter, also if they are offloaded.
inline void append_master(std::vector<std::byte>& to, const train::RankParameter& parameter, train::Rank& rank) {
  if (parameter.master.data()) return append(to, parameter.master, rank.device());
  for (const executor::KeptTensor& kept : rank.kept()) {
    if (kept.parameter != parameter.name || kept.name != executor::kMasterName) continue;
    const std::size_t before = to.size();
    to.resize(before + kept.view.bytes());
    if (kept.offloaded) kept.offloaded.read(0, std::span(to).subspan(before));
  }
}

inline Trace train(train::Rank& rank, int steps) {
  Trace trace;
  for (int step = 0; step < steps; ++step) {
    const train::StepResult result = rank.step();
    trace.losses.push_back(result.loss);
    trace.norms.push_back(result.grad_norm);
  }
  for (const train::RankParameter& parameter : rank.parameters()) {
    append(trace.weights, parameter.master);
    append(trace.gradients, parameter.gradient);
  }
  return trace;
}

inline Trace train(const TinyRun& run, int steps, const train::RankOptions& options = {}) {
  TinyRank rank(run, options);
  return train(*rank, steps);
}

} // namespace triax::test
