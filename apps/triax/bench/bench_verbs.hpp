// SPDX-License-Identifier: Apache-2.0
// The subcommands of `triax bench`.
#pragma once

#include <CLI/CLI.hpp>

namespace triax::app {

void add_bench_comm(CLI::App& bench, int& status);
void add_bench_kernels(CLI::App& bench, int& status);

} // namespace triax::app
