// SPDX-License-Identifier: Apache-2.0
// The memory, calls and communication of a rank's step, found by a dry run of its code: with views without data, and a
// device, kernel set and communicators that only count.
//
// Threads: the rank's main thread. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/memory.hpp"
#include "schedule/assumptions.hpp"
#include "schedule/program.hpp"
#include "triax/communicator.hpp"
#include "triax/kernels.hpp"
#include "triax/layout.hpp"

namespace triax::executor {

struct DryRunRequest {
  const Layout& layout;
  int rank = 0;
  const schedule::Assumptions& assumptions; // of the programs' verification
  KernelSet* host_kernels = nullptr;        // that update state in the memory of the host
};

/// Communication of a training step over one axis, or over a product of axes.
struct AxisPlan {
  std::string axis;              // Group::axis
  std::vector<std::string> axes; // of the product
  /// By index in the group. Transfers are counted for the planned rank only, so on the pipeline axis only its entry is
  /// complete.
  std::vector<CommStats> of_member;
  /// Bytes that the planned rank sends in transfers, by the index of the peer. They are part of its entry in of_member.
  std::map<int, std::uint64_t> sent;
};

/// An action of a stage; it is the same for each microbatch.
using StageAction = std::pair<schedule::Kind, int>;

struct Plan {
  ScratchBytes scratch;                // that the kernel set and the optimizer need
  Refusals refusals;                   // of the kernel set
  Refusals host_refusals;              // of DryRunRequest::host_kernels
  std::vector<AxisPlan> communication; // axes of more than one rank, then products
  /// The collectives over the tensor group, then over products with its axis, in order: of a training step, and of the
  /// passes of an evaluation. All tensor ranks must post the same.
  std::map<StageAction, std::vector<Collective>> tensor_collectives, evaluation_collectives;
};

} // namespace triax::executor
