// SPDX-License-Identifier: Apache-2.0
// Fixture of tests that save a tiny run on one layout, and continue or evaluate it on another, with the ranks as
// threads of the test.
//
// Threads: starts one per rank, and joins them. Ownership: owns the folder of the runs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "train/evaluate.hpp"
#include "train/loop.hpp"
#include "train/tiny_run.hpp"

namespace triax::test {

/// Pipeline, tensor and data ranks, and further keys.
struct Where {
  int pipeline = 1, tensor = 1, data = 1;
  std::map<std::string, std::string> keys = {};
};

class ResumedRun : public ::testing::Test {
 protected:
  ResumedRun() {
    run_.keys["train.steps"] = "8";
    run_.keys["model.layers"] = "4";
    run_.keys["lr.decay"] = "\"cosine\"";
    run_.keys["batch.global"] = "8";
  }

  config::RunConfig config(const Where& where, int stop_at) {
    run_.keys["parallel.pipeline"] = std::to_string(where.pipeline);
    run_.keys["parallel.tensor"] = std::to_string(where.tensor);
    run_.keys["parallel.data"] = std::to_string(where.data);
    run_.keys["train.stop_at"] = std::to_string(stop_at);
    const std::map<std::string, std::string> before = run_.keys;
    for (const auto& [key, value] : where.keys) run_.keys[key] = value;
    config::RunConfig out = run_.config();
    run_.keys = before;
    return out;
  }

  /// Continues the run to step `stop_at`, as all ranks of a job do. Returns the errors of ranks.
  std::vector<std::string> train(const Where& where, int stop_at, const std::string& folder = "run") {
    run_.keys["run.dir"] = text("\"{}\"", folder);
    const config::RunConfig config = this->config(where, stop_at);
    const train::RunFolder reserved(config, "# resolved\n");
    return start(config, TinySource(), [&](train::Rank& rank, train::Checkpoints& checkpoints, int index, TinySource&) {
      train::RunRecords records(config, "# resolved\n", null_log());
      train::Reports reports;
      if (index == 0) reports.records = &records;
      if (index == 0) reports_ = &reports;
      return train::run_loop(config, rank, signals_, reports, &checkpoints);
    });
  }

  /// Evaluates the newest checkpoint of the run. Returns the errors of ranks.
  std::vector<std::string> evaluate(const Where& where, const std::string& folder = "run") {
    run_.keys["run.dir"] = text("\"{}\"", folder);
    config::RunConfig config = this->config(where, 0);
    config.evaluates = true;
    if (!has_corpora_) config.data.validation = {};
    return start(config, TinySource(), [&](train::Rank& rank, train::Checkpoints& checkpoints, int index, TinySource&) {
      return train::run_evaluation(config, index, rank, signals_, {}, checkpoints);
    });
  }

  std::filesystem::path checkpoint(const std::string& folder, std::int64_t step) const {
    return run_.folder() / folder / "checkpoints" / checkpoint::folder_name(step);
  }

  /// All tensors and the state of training of a checkpoint, as bytes by name.
  std::map<std::string, std::vector<std::byte>> content(const std::string& folder, std::int64_t step) const {
    checkpoint::TensorReader reader(checkpoint(folder, step));
    std::map<std::string, std::vector<std::byte>> out;
    for (const checkpoint::SavedTensor& tensor : reader.manifest().content.tensors) {
      Shape begin = tensor.shape;
      for (int dim = 0; dim < begin.rank(); ++dim) begin[dim] = 0;
      std::vector<std::byte>& bytes = out[name_of(tensor)];
      bytes.resize(static_cast<std::size_t>(tensor.shape.elements()) * bytes_of(tensor.dtype));
      reader.read(tensor, begin, tensor.shape, bytes.data());
    }
    return out;
  }
  checkpoint::TrainingState state(const std::string& folder, std::int64_t step) const {
    return checkpoint::read_manifest(checkpoint(folder, step) / "manifest.json").training;
  }

  /// Restores the ranks of a job, each with its own copy of `source`, and calls body(rank, checkpoints, index, its
  /// source) for each on its thread. Returns their errors.
  template <class Source, class Body>
  std::vector<std::string> start(const config::RunConfig& config, const Source& source, Body body) {
    const Layout layout = train::layout_of(config);
    control::LocalStore store;
    control::JobAbort abort;
    const control::JobAbort::Listening listening(abort, store);
    std::vector<std::string> errors(static_cast<std::size_t>(layout.world_size()));
    std::vector<std::thread> threads;
    for (int index = 0; index < layout.world_size(); ++index)
      threads.emplace_back([&, index, own = source]() mutable {
        try {
          train::RankOptions options{.threads = 1, .abort = &abort};
          if (!has_corpora_) options.training = options.held_out = &own;
          train::Rank rank(config, layout, index, store, null_log(), options);
          train::Checkpoints checkpoints(config, layout, index, rank, store, null_log());
          try {
            checkpoints.restore();
            const train::LoopResult result = body(rank, checkpoints, index, own);
            if (index == 0) result_ = result;
          } catch (const Error& error) {
            abort.raise(index, error.what());
            throw;
          }
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(index)] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    std::erase(errors, "");
    return errors;
  }

  TinyRun run_;
  train::LoopResult result_;          // of rank 0
  train::Reports* reports_ = nullptr; // of rank 0, while train() runs
  bool has_corpora_ = false;          // the ranks read the run's corpora, not a TinySource
  const os::StopSignals signals_{null_log()};
};

} // namespace triax::test
