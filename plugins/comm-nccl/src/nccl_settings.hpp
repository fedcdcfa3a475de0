// SPDX-License-Identifier: Apache-2.0
// The plugin's options, and the environment variables that affect them. Settings that cannot work become a refusal;
// unexpected effects become a note for the log.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/error.hpp"
#include "triax/options.hpp"

namespace triax::comm_nccl {

struct Settings {
  bool edge_communicators = false;
  bool several_ranks_per_gpu = false;
  bool register_buffers = false;
  std::vector<std::string> notes;
  /// One for each variable that conflicts with the options.
  Refusals refusals;
  /// The same, for an NCCL that can keep the host's call order across communicators.
  Refusals order_refusals;
};

Settings read_settings(const Options& options);

/// The first NCCL version that keeps the host's call order across communicators if kOrder is 1.
inline constexpr int kOrderVersion = NCCL_VERSION(2, 26, 0);
inline constexpr const char* kOrder = "NCCL_LAUNCH_ORDER_IMPLICIT";

/// An environment variable for NCCL, with the value that ranks on a shared GPU need.
struct Variable {
  std::string name, value;
};
/// Only the variables that the environment does not set.
std::vector<Variable> variables_for_shared_gpu(int rank);

} // namespace triax::comm_nccl
