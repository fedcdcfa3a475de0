// SPDX-License-Identifier: Apache-2.0
// A measurement of kernel sets: the operations of a GPT, one set or two that take turns, and the results.
//
// Threads: values, any. Errors: check() returns them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/comm_plan.hpp"
#include "bench/gpt_operations.hpp"

namespace triax::bench {

struct KernelPlan {
  std::vector<Side> sides;   // one, or A and B
  bool may_be_equal = false; // the sides
  GptShapes shapes;
  DType compute = DType::f32;
  std::vector<std::string> names; // operations or cases; empty: all
  int threads = 1;                // CPU threads that a set may use
  std::int64_t rounds = 10;       // turns of one side; rounds A B B A of two
  double turn_s = 0.01;           // shortest duration of a turn
  std::int64_t product = 1024;    // n of the product of n x n that gives the arithmetic rate
  std::int64_t copied_mib = 64;   // size of the copy that measures the memory bandwidth
};

/// The errors of a plan; asks the kernel sets in a child process. `free_bytes`: of this machine's memory; 0: not known.
Refusals check(const KernelPlan& plan, std::int64_t free_bytes);

/// The rates of a device: of a large product as the set computes it, and of a large copy.
struct DeviceRates {
  double flops = 0, bytes = 0; // per second
};

struct KernelTimes {
  std::int64_t calls = 0;      // calls in a turn
  std::vector<double> turns_s; // mean time of a call, by turn
};

struct KernelResult {
  std::string name;
  double flops = 0, bytes = 0; // of a call, as OpCall counts them; flops: without scores that a causal mask hides
  std::vector<KernelTimes> sides;
  double difference = 0; // largest difference of two sides' results / largest magnitude in the tensor
};

/// Least time of the operation at these rates (Williams et al., CACM 2009).
double roofline_s(const KernelResult& result, const DeviceRates& rates);
double mean_s(const KernelTimes& times);
/// Time of B / time of A.
compare::Ratio ratio_of(const KernelResult& result);

} // namespace triax::bench
