// SPDX-License-Identifier: Apache-2.0
// A training run on GPUs as a user starts it: `triax train`, with a process and a GPU for each rank.
//
// TRIAX_RANKS_PER_GPU=N lets N ranks share a GPU, so that one GPU is enough. NCCL then works as between machines.
//
// Threads: one. Ownership: the fixture owns a folder with a corpus and the runs. Blocking: until the processes have
// ended. Without enough GPUs, a test is skipped with the reason.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "equality/cases.hpp"
#include "support/program.hpp"
#include "support/run_ranks.hpp"
#include "support/temp_folder.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/text.hpp"

namespace triax::equality {

class GpuRun : public ::testing::Test {
 public:
  /// Whether keys_of() describes the case. GPUs have no state in files, and rows come from schedulers only.
  static bool has_keys(const Case& run) {
    return !run.through_file && !run.split_backward && !run.offload && run.split.empty();
  }
  /// Values of --set for the case. The model has dropout, and four heads.
  static std::string keys_of(const Case& run, const std::string& comm) {
    std::string out = text(
        "parallel.pipeline={} parallel.tensor={} parallel.data={} parallel.chunks={} parallel.scatter_gather={} "
        "batch.micro={} batch.global={} schedule.plugin={} kernels.plugin={} model.layers={} comm.plugin={}",
        run.pipeline, run.tensor, run.data, run.chunks, run.scatter_gather, run.micro, run.samples(), run.scheduler,
        run.kernels, run.layers, comm);
    if (run.group > 0) out += text(" schedule.group={}", run.group);
    if (run.sequence_parallel) out += " parallel.sequence=true";
    if (run.recompute) out += " memory.recompute=full";
    if (run.cheap) out += " memory.recompute=cheap";
    if (run.partition) out += " memory.partition_activations=true";
    if (run.host_inputs) out += " memory.offload_activations=true";
    if (run.host_update) out += " memory.offload=optimizer memory.offload_buffer_bytes=4096";
    if (!run.shard.empty()) out += " optimizer.shard=" + run.shard;
    return out;
  }

 protected:
  void SetUp() override {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    ASSERT_EQ(cudaGetDeviceCount(&gpus_), cudaSuccess);
    if (const char* shared = std::getenv("TRIAX_RANKS_PER_GPU")) ranks_per_gpu_ = std::stoi(shared);
    test::write_file(folder_ / "run.toml", test::read_file(test::test_file("gpu.toml")));
    std::string words;
    for (int i = 0; i < 200; ++i) words += text("line {} of a text to learn from\n", i * i);
    test::write_file(folder_ / "text.txt", words);
    ASSERT_EQ(test::run(folder_.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1").status,
              0);
  }
  bool has_gpus_for(const Case& run) const { return run.world() <= gpus_ * ranks_per_gpu_; }

  /// The arguments of `triax`, for a run into `run_folder` (relative to folder()).
  static std::string train_arguments(const std::string& keys, const std::string& run_folder) {
    std::string out = text("train run.toml --set run.dir={}", run_folder);
    std::istringstream words(keys);
    for (std::string key; words >> key;) out += " --set " + key;
    return out;
  }

  /// The step records of a run, without what depends on time; empty, after a failure, if it does not end well.
  std::vector<nlohmann::json> records(const std::string& keys, int world) {
    const std::string run_folder = text("run-{}", ++runs_);
    const bool shares = world > gpus_ && keys.find(" comm.plugin=comm-local") == std::string::npos;
    const test::Outcome run =
        shares ? test::run_ranks(folder_.path(), train_arguments(keys_to_share(keys), run_folder), world)
               : test::run(folder_.path(), train_arguments(keys, run_folder), "2>&1");
    if (run.status != 0) {
      ADD_FAILURE() << "exit status " << run.status << " of a run with " << keys << "\n" << run.text;
      return {};
    }
    return records_in(run_folder);
  }
  std::vector<nlohmann::json> records_in(const std::string& run_folder) const {
    std::vector<nlohmann::json> out;
    std::istringstream metrics(test::read_file(folder_ / run_folder / "metrics.jsonl"));
    for (std::string line; std::getline(metrics, line);) {
      nlohmann::json record = nlohmann::json::parse(line);
      for (const char* of_time : {"tokens_per_s", "step_ms", "model_tflops", "bubble_rate", "comm"})
        record.erase(of_time);
      out.push_back(std::move(record));
    }
    return out;
  }
  const test::TempFolder& folder() const { return folder_; }

  int gpus_ = 0;

 private:
  /// Adds what comm-nccl needs when ranks share a GPU.
  static std::string keys_to_share(const std::string& keys) {
    std::string out = keys;
    if (keys.find(" comm.plugin=comm-nccl") != std::string::npos) out += " comm.several_ranks_per_gpu=true";
    if (keys.find(" comm.pipeline.plugin=comm-nccl") != std::string::npos)
      out += " comm.pipeline.several_ranks_per_gpu=true";
    return out;
  }

  int ranks_per_gpu_ = 1;
  test::TempFolder folder_;
  int runs_ = 0;
};

} // namespace triax::equality
