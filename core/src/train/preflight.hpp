// SPDX-License-Identifier: Apache-2.0
// Everything short of training: creates each plugin's object, asks every supports(), makes and proves the program,
// plans every rank without memory, and lists the refusals together.
//
// Threads: one. Ownership: values. Blocking: computes; no network; of devices, asks whether they are there.
// Errors: none: what a plugin or a room throws is a refusal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "executor/memory.hpp"
#include "train/balance.hpp"
#include "train/placement.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::train {

struct MemoryRow {
  std::string what; // "weights", "gradients", "optimizer state", "activations", "scratch"...
  std::size_t bytes = 0;
};

/// Ranks that differ in their data coordinate alone, which hold the same.
struct RankPlan {
  std::vector<int> ranks; // by data coordinate
  int pipeline = 0, tensor = 0;
  std::vector<std::string> layers;                     // names of the layers that each of them holds
  std::vector<MemoryRow> memory;                       // of each of them
  std::vector<executor::ActivationPart> activations{}; // what that row of `memory` is made of, the largest first
  std::uint64_t bytes() const;                         // of all rows of `memory`
};

/// What the run will take of a corpus.
struct CorpusPlan {
  std::filesystem::path path;
  bool validation = false;
  double share = 0; // of the samples
  std::int64_t tokens = 0;
  double epochs = 0; // how often training, or one evaluation, goes through it
};

struct Preflight {
  std::vector<Support> refusals; // reasons name keys in full ("parallel.tensor"); config::refusal adds positions
  std::vector<RankPlan> plans;   // by pipeline, then tensor coordinate
  std::vector<CorpusPlan> corpora;
  std::int64_t parameters = 0;      // of the whole model, tied ones once
  std::optional<DeviceKind> device; // of the kernel set; none: it is not installed here
  int threads = 1;                  // with which it computes on the host, in each rank
  Balance balance{};                // of the stages
};

/// `devices`: the ranks of this machine whose devices are asked for; none where the run is only looked at.
Preflight preflight(const config::RunConfig& run, const Placement& placement, Log& log,
                    const AskedDevices& devices = {});

} // namespace triax::train
