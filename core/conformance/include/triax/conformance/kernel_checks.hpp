// SPDX-License-Identifier: Apache-2.0
// The conformance suite of kernel sets. Its clauses are K1 to K19 and K56 at the end of triax/kernels.hpp, and K20
// to K55 at the operations of triax/kernel_ops.hpp. The checks compute small cases on the set's device, and compare
// them with the definitions of the operations in double.
//
// Threads, blocking, errors: as check.hpp. Ownership: checks keep a copy of the subject.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "triax/conformance/check.hpp"
#include "triax/conformance/probed_call.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/kernels.hpp"

namespace triax::conformance {

/// The answers of a kernel set before it has a device.
struct KernelAnswers {
  DeviceKind device = DeviceKind::host;
  bool computes = true;                       // KernelSet::computes()
  std::vector<DType> types;                   // compute types that supports(KernelRequest) accepts
  std::map<std::string, std::string> refused; // operations that supports(OpCall) refuses in all cases, with the reason
  bool repeats = true; // supports(OpCall) and RepeatLimits leave calls that repeat a fused operation
};
/// Asks a set that was not started. `guard`: runs each call of it.
KernelAnswers ask_kernels(KernelSet& kernels, const CallGuard& guard = {});

/// The kernel set under test.
struct KernelSubject {
  std::string name; // "kernels-mine"
  /// Creates an object with the options under test, for one rank.
  std::function<Object<KernelSet>()> kernels;
  /// The same with this number of threads; empty if the set has no such option.
  std::function<Object<KernelSet>(int threads)> with_threads;
  /// The answers that ask_kernels() returns, asked in another process if the set may crash. They decide which checks
  /// apply.
  KernelAnswers answers;
  /// The number of allocations of all threads of the process (allocations.hpp); empty: not counted.
  std::function<std::size_t()> allocations;
};

/// The checks of kernel sets that apply to it.
std::vector<Check> kernel_checks(const KernelSubject& subject);

} // namespace triax::conformance
