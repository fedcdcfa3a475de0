// SPDX-License-Identifier: Apache-2.0
// Checks a list that an optional interface of a block returns: the tensors or steps that can be recomputed.
//
// Threads: the main thread. Errors: those of the plugin.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "plugin/call_guard.hpp"
#include "triax/error.hpp"
#include "triax/model.hpp"
#include "triax/text.hpp"

namespace triax::train {

/// Calls `list` twice, which must return equal lists of `items` ("tensors"). `problem_of` says what is wrong with a
/// list, or returns an empty text. `function`: the name of what `list` calls.
template <class List, class ProblemOf>
Refusals check_listed(const config::RunConfig& run, const Layer& block, const char* function, const char* items,
                      const List& list, const ProblemOf& problem_of) {
  const auto listed = [&] {
    return plugin::guarded_call(run.model.name, function, [&list] {
      const auto parts = list();
      return std::vector(parts.begin(), parts.end());
    });
  };
  const auto first = listed();
  std::string problem = problem_of(first);
  if (problem.empty() && listed() != first)
    problem = text("{}: {}() lists other {} at its second call", block.name(), function, items);
  if (problem.empty()) return {};
  return make_refusal(ErrorCode::kIncompatible, {run.model.named_in + ".plugin"}, "{}: {}", run.model.name, problem)
      .with_hint(
          "this is a defect of the model: report it to its author, or use memory.recompute = \"none\" or \"full\"");
}

} // namespace triax::train
