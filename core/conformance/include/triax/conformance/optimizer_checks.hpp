// SPDX-License-Identifier: Apache-2.0
// The conformance suite of optimizers. Its clauses O1 to O23 are at the end of triax/optimizer.hpp. The checks step a
// few parameters on the host, also on ranks that have parts of them.
//
// Threads, blocking, errors: as check.hpp. Ownership: checks keep a copy of the subject.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "triax/conformance/check.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/kernels.hpp"
#include "triax/optimizer.hpp"
#include "triax/options.hpp"

namespace triax::conformance {

/// The optimizer that the suite checks.
struct OptimizerSubject {
  std::string name; // "optim-mine"
  /// Creates an object, with the options below.
  std::function<Object<Optimizer>(const PluginContext&)> optimizer;
  Options options;
  /// Create kernel sets of the host that compute, such as kernels-reference. A check with certain types uses the first
  /// that supports them, and leaves out types that none supports.
  std::vector<std::function<Object<KernelSet>()>> kernels;
  RankSetup ranks;          // how ranks are set up; no backend: checks that need communicators are skipped
  bool saves_state = false; // whether the optimizer offers SavedState
  /// The number of allocations that the calling thread has made (allocations.hpp); empty: not counted.
  std::function<std::size_t()> allocations;
};

/// The suite for this subject.
std::vector<Check> optimizer_checks(const OptimizerSubject& subject);

} // namespace triax::conformance
