// SPDX-License-Identifier: Apache-2.0
#include "common/unknown_variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/printable.hpp"
#include "plugin/did_you_mean.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

/// Names that a user may mean: those of the program, and those of the GPU stand-in (docs/gpu.md).
constexpr const char* kMeant[] = {
    "TRIAX_JOB_TOKEN",       "TRIAX_PLUGIN_PATH",       "TRIAX_GPU_COUNTS",        "TRIAX_GPU_DEVICES",
    "TRIAX_GPU_FAIL",        "TRIAX_GPU_HOST",          "TRIAX_GPU_LOG",           "TRIAX_GPU_MEMORY",
    "TRIAX_GPU_PRODUCTS",    "TRIAX_GPU_PROFILE",       "TRIAX_GPU_NCCL_REPORT_S", "TRIAX_GPU_SEED",
    "TRIAX_GPU_RDMA_WRITES", "TRIAX_GPU_SHARED_MEMORY", "TRIAX_GPU_THREADS",       "TRIAX_GPU_WAIT_VALUES"};

/// Variables of scripts and tests, which the programs that they start inherit.
bool is_of_scripts(std::string_view name) {
  constexpr std::string_view kNames[] = {"TRIAX_LAUNCHER",      "TRIAX_TURNS",    "TRIAX_EQUALITY",
                                         "TRIAX_FORTUNES",      "TRIAX_KILLS",    "TRIAX_MUTATION",
                                         "TRIAX_IN_NAMESPACES", "TRIAX_SANITIZE", "TRIAX_RANKS_PER_GPU"};
  return name.starts_with("TRIAX_TEST_") || std::ranges::find(kNames, name) != std::end(kNames);
}

} // namespace

bool is_other_rank() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::strtol(rank, nullptr, 10) > 0;
  return false;
}

std::vector<std::string> unknown_variables() {
  std::vector<std::string> out;
  if (std::getenv("TRIAX_LAUNCHER") || is_other_rank()) return out;
  const std::vector<std::string> meant(std::begin(kMeant), std::end(kMeant));
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view variable = *entry;
    const std::string name(variable.substr(0, variable.find('=')));
    if (!name.starts_with("TRIAX_") || is_of_scripts(name) || std::ranges::find(meant, name) != meant.end()) continue;
    const std::vector<std::string> near = plugin::nearest(name, meant);
    out.push_back(text("note: {} is set, but Triax does not read it{}", shortened(name),
                       near.empty() ? "" : text("; did you mean {}?", near.front())));
  }
  return out;
}

} // namespace triax::app
