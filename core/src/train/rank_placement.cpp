// SPDX-License-Identifier: Apache-2.0
#include "train/rank_placement.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "os/cpu_quota.hpp"
#include "train/plugins.hpp"

namespace triax::train {

namespace {

/// True if there is only one rank. Preflight reports what a plugin throws here.
bool in_one_process(const config::RunConfig& run, std::int64_t ranks) {
  if (ranks == 1 || ranks > kMaxWorld) return true; // preflight reports more ranks as an error
  const Layout layout = layout_of(run);
  for (const auto& [axis, choice] : run.comm) {
    if (layout.size(axis) == 1 || !choice.library) continue;
    try {
      const auto backend =
          plugin::create<CommBackend>(*choice.library, {choice.options, null_log(), layout, 0, 1}, choice.folders);
      if (backend->traits().ranks == CommTraits::Ranks::same_process) return true;
    } catch (const std::exception&) {
      continue;
    }
  }
  return false;
}

} // namespace

Placement choose_placement(const config::RunConfig& run) {
  // The product of the axis sizes may be larger than any run; preflight reports that.
  const std::int64_t ranks = std::int64_t{run.parallel.pipeline} * run.parallel.tensor * run.parallel.data;
  const auto most = std::int64_t{std::numeric_limits<int>::max()};
  return {static_cast<int>(std::min(ranks, most)), os::available_cores(), in_one_process(run, ranks)};
}

std::string to_text(const Placement& placement, std::optional<DeviceKind> device, int threads) {
  const bool one = placement.ranks == 1;
  const std::string as = placement.ranks_are_threads ? "threads of this process" : "processes";
  std::string ranks = one ? "1 rank" : text("{} ranks as {}", placement.ranks, as);
  if (!device) return ranks;
  if (device == DeviceKind::cuda) return ranks + (one ? ", computing on a GPU" : ", computing on GPUs");
  if (device == DeviceKind::sim) return ranks + (one ? ", its time modelled" : ", their time modelled");
  const std::string each = text("{} CPU thread{}", threads, threads == 1 ? "" : "s");
  const std::string on = placement.cores == 1 ? "1 core" : text("{} cores", placement.cores);
  if (!one) return text("{}, {} each on {}", ranks, each, on);
  return threads > placement.cores ? text("{}, {} on {}", ranks, each, on) : text("{}, {}", ranks, each);
}

} // namespace triax::train
