// SPDX-License-Identifier: Apache-2.0
// triax bench comm | kernels: measures plugins, one alone or two that take turns.
#include "bench/bench_verbs.hpp"
#include "common/verbs.hpp"

namespace triax::app {

void add_bench(CLI::App& program, int& status) {
  CLI::App* const bench = program.add_subcommand("bench", "measures plugins, one alone or two that take turns");
  bench->require_subcommand(1);
  add_bench_comm(*bench, status);
  add_bench_kernels(*bench, status);
}

} // namespace triax::app
