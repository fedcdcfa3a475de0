// SPDX-License-Identifier: Apache-2.0
// Reads the affinity mask and control groups.
#include "os/cpu_quota.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

namespace triax::os {

namespace {

namespace fs = std::filesystem;
constexpr double kNoQuota = std::numeric_limits<double>::infinity();

/// cpu.max: "max 100000" or "250000 100000".
double quota_v2(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream file(group / "cpu.max");
  return file >> quota >> period && period > 0 ? quota / period : kNoQuota;
}

/// cpu.cfs_quota_us is -1 if there is no quota.
double quota_v1(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

/// The smallest quota of the group at `path` below `mount` and of all groups above it. In a container, the path may not
/// be visible below the mount, which is then the container's own group. Groups that do not exist are skipped.
double smallest(const fs::path& mount, const std::string& path, double (*quota)(const fs::path&)) {
  double least = quota(mount);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    least = std::min(least, quota(group));
  }
  return least;
}

bool has_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string controller; std::getline(list, controller, ',');)
    if (controller == "cpu") return true;
  return false;
}

/// A line of /proc/self/cgroup: "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1).
double quota_of(const std::string& line, const fs::path& root) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return kNoQuota;
  const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
  const fs::path mounts = root / "sys/fs/cgroup";
  if (controllers.empty())
    return std::min(smallest(mounts, path, quota_v2), smallest(mounts / "unified", path, quota_v2));
  if (!has_cpu(controllers)) return kNoQuota;
  return std::min(smallest(mounts / controllers, path, quota_v1), smallest(mounts / "cpu", path, quota_v1));
}

} // namespace

int available_cores(int affinity, const fs::path& root) {
  double cores = affinity;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) cores = std::min(cores, quota_of(line, root));
  return std::max(1, static_cast<int>(cores));
}

int available_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // On failure (more than CPU_SETSIZE cores), use the number of all cores.
  const bool known = sched_getaffinity(0, sizeof mask, &mask) == 0;
  return available_cores(known ? CPU_COUNT(&mask) : static_cast<int>(std::thread::hardware_concurrency()), "/");
}

} // namespace triax::os
