// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads, each with a fake CUDA device, on this plugin's backend over the fake NCCL.
//
// Threads and blocking: as in support/ranks.hpp. At the end, a test fails on a violation or a remaining communicator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fake_nccl.hpp"
#include "support/communicator_suite.hpp"

namespace triax::test {

/// Options of the plugin, and the behaviour of the fake NCCL.
struct FakeNcclOptions {
  bool edge_communicators = false, several_ranks_per_gpu = false, register_buffers = false;
  FakeRules rules = {};
  std::function<FakeProcess(int rank)> process = [](int rank) {
    return FakeProcess{.rank = rank, .gpu = text("GPU {}", rank)};
  };
  bool expects_violations = false; // the test checks the violations itself
};

/// Also resets the fake.
Communication communication(const FakeNcclOptions& options = {});

inline void run_members(const Layout& layout, const FakeNcclOptions& options, const std::function<void(Rank&)>& body) {
  run_ranks(layout, body, communication(options));
}
inline void run_members(int count, const FakeNcclOptions& options, const std::function<void(Rank&)>& body) {
  run_members(Layout::ptd(1, count, 1), options, body);
}

} // namespace triax::test
