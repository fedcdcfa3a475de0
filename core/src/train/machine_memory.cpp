// SPDX-License-Identifier: Apache-2.0
#include "train/machine_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "report/units.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

std::uint64_t machine_memory() {
  std::uint64_t bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const fs::path mount = "/sys/fs/cgroup";
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue; // version 2
    fs::path group = mount;
    for (const fs::path& part : fs::path(line.substr(3)).relative_path()) {
      group /= part;
      std::uint64_t limit = 0; // reading "max" fails and leaves no limit
      if (std::ifstream(group / "memory.max") >> limit) bytes = std::min(bytes, limit);
    }
  }
  return bytes;
}

/// Bytes of a rank on this machine: all, or if it computes on a GPU those that are pinned on the host.
std::uint64_t bytes_on_machine(const RankPlan& plan, DeviceKind device) {
  if (device == DeviceKind::host) return plan.bytes();
  std::uint64_t out = 0;
  for (const MemoryRow& row : plan.memory) out += row.is_on_host ? row.bytes : 0;
  return out;
}

} // namespace

Refusals fits_in_memory(const Preflight& preflight, const Placement& placement) {
  if (preflight.device != DeviceKind::host && preflight.device != DeviceKind::cuda) return {};
  std::vector<std::uint64_t> needs; // per rank; that of a GPU is checked with the device
  for (const RankPlan& plan : preflight.plans)
    needs.insert(needs.end(), plan.ranks.size(), bytes_on_machine(plan, *preflight.device));
  std::ranges::sort(needs);
  const std::size_t ranks = std::min(needs.size(), static_cast<std::size_t>(placement.ranks));
  const std::uint64_t needed =
      std::accumulate(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(ranks), std::uint64_t{0});
  const std::uint64_t there = machine_memory();
  if (needed <= there) return {};
  return make_refusal(ErrorCode::kOutOfMemory, {}, "the run needs {} of {}memory{}, but this machine has {}",
                      report::bytes_text(needed), preflight.device == DeviceKind::host ? "" : "host ",
                      ranks > 1 ? text(" for its {} ranks", ranks) : std::string(), report::bytes_text(there))
      .with_hint("use a smaller batch.micro or model; triax check --no-device skips the checks of this machine");
}

} // namespace triax::train
