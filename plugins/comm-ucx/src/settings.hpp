// What the plugin's keys ask of UCX, and what the environment has already set there.
//
// Threads: values. Ownership: they own their text. Blocking: never. Errors: a key and a UCX_ variable that contradict
// each other are told as a refusal; nothing is chosen between them in silence.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "triax/error.hpp"
#include "triax/options.hpp"

namespace comm_ucx {

enum class Wait { yield, spin, event };
enum class DeviceMemory { automatic, direct, staged };

struct Settings {
  Wait wait = Wait::yield;
  DeviceMemory device_memory = DeviceMemory::automatic;
  std::size_t staging_bytes = 0;
  /// UCX's names and values that are to be set: only those that the environment does not set.
  std::vector<std::pair<std::string, std::string>> changes;
  /// What the log should say: a default that gives way to the environment.
  std::vector<std::string> notes;
  /// The first contradiction.
  triax::Support support = triax::Support::yes();
  std::string devices; // in the form of UCX_NET_DEVICES, whoever chose them; empty: UCX does
  bool memory = true;  // shared memory is not ruled out
  bool tells = false;  // what holds for the run: one rank says it
  bool quiet = true;   // the user has not asked for UCX's own log
};

inline constexpr std::size_t kRendezvousThreshold = std::size_t{256} << 10;

Settings read_settings(const triax::Options& options);

} // namespace comm_ucx
