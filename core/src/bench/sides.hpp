// SPDX-License-Identifier: Apache-2.0
// The sides of a measurement, one or two that take turns, and what their times say.
//
// Threads: values, any. Errors: check_sides() returns them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/paired_ratio.hpp"
#include "config/run_config.hpp"
#include "triax/error.hpp"

namespace triax::bench {

/// A plugin with its options; `table` is "comm" or "kernels".
struct Side {
  std::string flag; // that names the plugin: "--plugin", "--vs"
  config::PluginChoice choice;
  std::vector<std::pair<std::string, std::string>> set; // options that the user set, as TOML
};

/// Two sides that do not differ though they should, or too few rounds of them. `table`: of their options.
Refusals check_sides(const std::vector<Side>& sides, std::int64_t rounds, bool may_be_equal, std::string_view table);

/// The sides of the turns of a round: 0 1 1 0, or 1 0 0 1; with one side 0.
std::vector<std::size_t> turns_of_round(std::size_t sides, std::int64_t round);

double mean_of(const std::vector<double>& times);
/// Time of B / time of A, from their turns; each round has two of each.
compare::Ratio ratio_of_turns(const std::vector<double>& a, const std::vector<double>& b);

} // namespace triax::bench
