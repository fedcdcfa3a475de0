// The plugin's keys, and what the environment says that bears on them.
//
// Threads: values. Ownership: they own their text. Blocking: never. Errors: what could not work is told as a refusal,
// what works otherwise than one may expect as a note for the log.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/error.hpp"
#include "triax/options.hpp"

namespace comm_nccl {

using namespace triax;

struct Settings {
  bool edge_communicators = false;
  bool several_ranks_per_gpu = false;
  bool register_buffers = false;
  std::vector<std::string> notes;
  /// The first variable that does not go with the keys.
  Support support = Support::yes();
  /// The same, for an NCCL that can keep the host's order over communicators.
  Support ordered = Support::yes();
};

Settings read_settings(const Options& options);

/// The first NCCL that keeps the host's order over communicators, where kOrder is 1.
inline constexpr int kOrderVersion = NCCL_VERSION(2, 26, 0);
inline constexpr const char* kOrder = "NCCL_LAUNCH_ORDER_IMPLICIT";

/// A variable for NCCL, and the value that ranks which share a GPU need.
struct Variable {
  std::string name, value;
};
/// Only those that the environment does not set.
std::vector<Variable> variables_for_shared_gpu(int rank);

} // namespace comm_nccl
