// SPDX-License-Identifier: Apache-2.0
// UCX settings from the plugin's options and the environment. An option and a UCX_ variable that contradict each other
// become a refusal: neither has precedence.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "triax/error.hpp"
#include "triax/options.hpp"

namespace triax::comm_ucx {

enum class Wait { yield, spin, event };
enum class DeviceMemory { automatic, direct, staged };

/// A choice of transports or network devices, by a key or by a variable of the environment.
struct Restriction {
  std::string text; // "transports = "tcp"", "UCX_TLS = "tcp" in the environment"
  std::string name; // "transports", "UCX_TLS"
};

struct Settings {
  Wait wait = Wait::yield;
  DeviceMemory device_memory = DeviceMemory::automatic;
  std::size_t staging_bytes = 0;
  /// UCX variables to set, with their values: only those that the environment does not set.
  std::vector<std::pair<std::string, std::string>> changes;
  /// Empty if UCX chooses.
  std::vector<Restriction> restrictions;
  /// Notes for the log: defaults that the environment overrides.
  std::vector<std::string> notes;
  /// One for each contradiction.
  triax::Refusals refusals;
  std::string devices; // in the form of UCX_NET_DEVICES, from option or environment; empty: UCX chooses
  bool memory = true;  // shared memory is allowed
  bool logs = false;   // this rank logs what holds for the whole run
  bool quiet = true;   // UCX's own log is off, unless the user has requested it
};

inline constexpr std::size_t kRendezvousThreshold = std::size_t{256} << 10;

Settings read_settings(const triax::Options& options);

} // namespace triax::comm_ucx
