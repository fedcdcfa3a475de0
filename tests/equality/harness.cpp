// SPDX-License-Identifier: Apache-2.0
// Trains with ranks as threads, through the class that runs every rank.
#include "equality/harness.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "csv/program_csv.hpp"
#include "support/loaded_scheduler.hpp"
#include "support/temp_folder.hpp"
#include "train/tiny_run.hpp"

namespace triax::equality {

namespace {

std::string quoted(const std::string& name) {
  return "\"" + name + "\"";
}

/// Whether the harness delays the weights that layers read, and not the engine.
bool delays_by_hand(const Case& run, const Training& training) {
  return training.warmup_steps >= 0 && (!run.host_update || training.delay_by_hand);
}

void describe(test::TinyRun& toml, const Case& run, const Training& training) {
  toml.keys["model.layers"] = text("{}", run.layers);
  toml.keys["model.heads"] = text("{}", kHeads);
  toml.keys["model.hidden"] = text("{}", kHidden);
  toml.keys["model.sequence"] = text("{}", run.sequence);
  toml.keys["model.vocab"] = text("{}", kVocab);
  toml.keys["model.dropout"] = text("{}", training.dropout);
  if (training.model == "model-llama") toml.use_llama(kHeads);
  toml.keys["parallel.pipeline"] = text("{}", run.pipeline);
  toml.keys["parallel.tensor"] = text("{}", run.tensor);
  toml.keys["parallel.data"] = text("{}", run.data);
  toml.keys["parallel.chunks"] = text("{}", run.chunks);
  toml.keys["batch.global"] = text("{}", run.samples());
  toml.keys["batch.micro"] = text("{}", run.micro);
  toml.keys["schedule.plugin"] = quoted(run.scheduler);
  if (run.scatter_gather) toml.keys["parallel.scatter_gather"] = "true";
  if (run.sequence_parallel) toml.keys["parallel.sequence"] = "true";
  if (!run.split.empty()) toml.keys["parallel.split"] = run.split;
  if (!run.shard.empty()) toml.keys["optimizer.shard"] = quoted(run.shard);
  if (run.recompute) toml.keys["memory.recompute"] = "\"full\"";
  if (run.cheap) toml.keys["memory.recompute"] = "\"cheap\"";
  if (run.offload) {
    toml.keys["memory.offload"] = "\"disk\"";
    toml.keys["memory.offload_buffer_bytes"] = "4096";
  }
  if (run.host_update) {
    toml.keys["memory.offload"] = "\"optimizer\"";
    toml.keys["memory.offload_buffer_bytes"] = "4096";
    if (!training.sent_gradients.empty()) toml.keys["memory.offload_gradients"] = quoted(training.sent_gradients);
    if (!delays_by_hand(run, training)) {
      toml.keys["memory.offload_delayed_update"] = training.warmup_steps < 0 ? "false" : "true";
      toml.keys["memory.offload_warmup_steps"] = text("{}", std::max(training.warmup_steps, 0));
    }
  }
  if (!training.inner_kernels.empty()) toml.keys["kernels.inner"] = quoted(training.inner_kernels);
  if (run.partition) toml.keys["memory.partition_activations"] = "true";
  if (run.host_inputs) toml.keys["memory.offload_activations"] = "true";
  toml.keys["comm.plugin"] = quoted(training.comm);
  if (!training.pipeline_comm.empty()) toml.keys["comm.pipeline.plugin"] = quoted(training.pipeline_comm);
  if (run.group > 0) toml.keys["schedule.group"] = text("{}", run.group);
  toml.keys["kernels.plugin"] = quoted(run.kernels);
  toml.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  toml.keys["optimizer.plugin"] = quoted(training.optimizer);
  toml.keys["optimizer.lr"] = text("{}", training.lr);
  toml.keys["optimizer.weight_decay"] = text("{}", training.weight_decay);
  toml.keys["train.clip_grad"] = text("{}", training.clip_grad);
  if (training.cuda_graph) toml.keys["train.cuda_graph"] = "true";
  toml.keys["train.precision"] = quoted(training.precision);
  if (training.initial_scale > 0) {
    toml.keys["loss_scale.initial"] = text("{}", training.initial_scale);
    toml.keys["loss_scale.hysteresis"] = "1";
  }
  if (training.scale_window > 0) toml.keys["loss_scale.window_steps"] = text("{}", training.scale_window);
  toml.keys["train.steps"] = text("{}", training.steps);
}

/// Writes the rows that `run` would use to a file, for sched-file.
void describe_file(test::TinyRun& toml, const Case& run, const std::filesystem::path& file) {
  const test::LoadedScheduler scheduler(run.scheduler);
  test::write_file(file,
                   schedule::to_csv(scheduler->rows({run.pipeline, run.chunks, static_cast<int>(run.microbatches)})));
  toml.keys["schedule.plugin"] = quoted("sched-file");
  toml.keys["schedule.file"] = quoted(file.string());
}

std::vector<Action> with_split_backwards(const std::vector<Action>& row) {
  std::vector<Action> out;
  std::deque<Action> weights; // weight gradients still to be computed
  const auto pop = [&] {
    out.push_back(weights.front());
    weights.pop_front();
  };
  for (const Action& action : row) {
    if (action.kind == ComputeKind::forward) {
      out.push_back(action);
      continue;
    }
    out.push_back(backward_input(action.stage, action.microbatch));
    weights.push_back(backward_weight(action.stage, action.microbatch));
    if (weights.size() > 1) pop();
  }
  while (!weights.empty()) pop();
  return out;
}

/// Sample n is sample n mod `period`; with 0 it is sample n.
class Repeating final : public executor::BatchSource {
 public:
  explicit Repeating(std::int64_t period) : period_(period) {}
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    std::vector<std::int64_t> of(samples.begin(), samples.end());
    for (std::int64_t& sample : of)
      if (period_ > 0) sample %= period_;
    source_.microbatch(of, tokens, targets);
  }

 private:
  std::int64_t period_;
  test::TinySource source_;
};

/// One-step delayed updates, from their definition: after a step, the layers get the weights of the update before. The
/// master weights have all updates.
class DelayByHand {
 public:
  explicit DelayByHand(train::Rank& rank) : rank_(rank), newest_(read()) {}

  void after_update(bool is_delayed) {
    Weights updated = read();
    if (is_delayed) write(newest_);
    newest_ = std::move(updated);
  }

 private:
  using Weights = std::map<std::string, std::vector<std::byte>>;

  Weights read() {
    Weights out;
    for (const train::RankParameter& parameter : rank_.parameters())
      test::append(out[parameter.name], parameter.working, rank_.device());
    return out;
  }
  void write(const Weights& weights) {
    for (const train::RankParameter& parameter : rank_.parameters()) {
      const TensorView& to = parameter.working;
      const std::unique_ptr<Memory> pinned = rank_.device().allocate(to.bytes(), MemoryKind::pinned);
      std::ranges::copy(weights.at(parameter.name), static_cast<std::byte*>(pinned->data()));
      rank_.device().upload(to, TensorView(pinned->data(), to.dtype(), to.shape()), rank_.stream());
      rank_.device().wait(rank_.stream().record(), deadline_in(60));
    }
  }

  train::Rank& rank_;
  Weights newest_; // that the last update wrote
};

KeptRank train_rank(train::Rank& rank, const Case& run, const Training& training) {
  KeptRank kept;
  std::optional<DelayByHand> by_hand;
  if (delays_by_hand(run, training)) by_hand.emplace(rank);
  for (int step = 1; step <= training.steps; ++step) {
    const train::StepResult result = rank.step();
    if (by_hand && !result.skipped) by_hand->after_update(step > training.warmup_steps && step < training.steps);
    kept.losses.push_back(result.loss);
    kept.norms.push_back(result.grad_norm);
    kept.skipped.push_back(result.skipped);
    if (result.loss_scale) kept.scales.push_back(*result.loss_scale);
    kept.traffic.push_back(rank.traffic());
    kept.host_traffic.push_back(rank.host_traffic());
  }
  kept.held_out = rank.evaluate().loss;
  for (const train::RankParameter& parameter : rank.parameters()) {
    KeptParameter& of = kept.parameters[parameter.name];
    of.spec = *parameter.spec;
    of.dtype = parameter.master.dtype();
    test::append_master(of.weights, parameter, rank);
    test::append(of.gradient, parameter.gradient, rank.device());
    test::append(of.working, parameter.working, rank.device());
    of.first = parameter.first;
    of.gradient_first = parameter.gradient_first;
    of.working_first = parameter.working_first;
    of.working_dtype = parameter.working.dtype();
  }
  return kept;
}

} // namespace

train::Preflight check(const Case& run, const Training& training) {
  test::TinyRun toml;
  describe(toml, run, training);
  config::RunConfig config = toml.config();
  config.data.training.paths.clear(); // a plan needs no samples
  return train::preflight(config, train::choose_placement(config), null_log());
}

Ranks train(const Case& run, const Training& training, const Schedule* rows) {
  test::TinyRun toml;
  describe(toml, run, training);
  const test::TempFolder folder;
  if (run.through_file) describe_file(toml, run, folder / "rows.csv");
  const config::RunConfig config = toml.config();
  const Layout layout = train::layout_of(config);
  Schedule split;
  if (run.split_backward && !rows) {
    split = test::LoadedScheduler(run.scheduler)->rows({run.pipeline, run.chunks, static_cast<int>(run.microbatches)});
    for (int rank = 0; rank < run.pipeline; ++rank) split.row(rank) = with_split_backwards(split.row(rank));
    rows = &split;
  }
  control::LocalStore store;
  control::JobAbort abort;
  const control::JobAbort::Listening listening(abort, store);
  std::vector<KeptRank> out(static_cast<std::size_t>(layout.world_size()));
  std::vector<std::thread> threads;
  threads.reserve(out.size());
  for (int index = 0; index < layout.world_size(); ++index)
    threads.emplace_back([&, index] {
      try {
        Repeating source(training.same_samples ? run.samples() : 0);
        train::Rank rank(config, layout, index, store, null_log(),
                         {.training = &source, .held_out = &source, .schedule = rows, .threads = 1, .abort = &abort});
        try {
          out[static_cast<std::size_t>(index)] = train_rank(rank, run, training);
        } catch (const std::exception& error) {
          abort.raise(index, error.what()); // before the rank ends, so that others see the cause first
          throw;
        }
      } catch (const std::exception& error) {
        abort.raise(index, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (abort.raised()) throw std::runtime_error(text("{}: {}", to_text(run), abort.reason()));
  return out;
}

} // namespace triax::equality
