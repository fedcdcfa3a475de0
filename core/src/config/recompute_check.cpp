// SPDX-License-Identifier: Apache-2.0
#include "config/recompute_check.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "config/byte_size.hpp"

namespace triax::config {

namespace {

using Listed = std::vector<std::string>;

Refusals check_automatic_split(const Values& values, const Listed* recompute) {
  const auto* split = values.find<std::string>("parallel.split");
  if (!split || !recompute || std::ranges::adjacent_find(*recompute, std::not_equal_to()) == recompute->end())
    return {};
  return make_refusal(ErrorCode::kConflict, {"parallel.split", "memory.recompute"},
                      "parallel.split = \"{}\" needs one value of memory.recompute for all stages", *split)
      .with_hint("write one value, or list the blocks of each stage in parallel.split");
}

Refusals check_activation_budget(const Values& values, const Listed* of_each) {
  const auto* budget = values.find<std::string>("memory.activation_budget");
  const auto* of_all = values.find<std::string>("memory.recompute");
  if (!budget) return {};
  const bool is_used =
      (of_all && *of_all == "optimal") || (of_each && std::ranges::find(*of_each, "optimal") != of_each->end());
  if (is_used && budget->empty())
    return make_refusal(ErrorCode::kMissing, {"memory.activation_budget", "memory.recompute"},
                        "memory.recompute = \"optimal\" needs memory.activation_budget")
        .with_hint("write the memory for the activations of a rank, such as \"2GiB\"");
  if (budget->empty() || bytes_of(*budget)) return {};
  if (is_too_large(*budget))
    return make_refusal(ErrorCode::kInvalidValue, {"memory.activation_budget"},
                        "memory.activation_budget = \"{}\" is more than {}", shortened(printable(*budget)), kMaxSize)
        .with_hint("write at most {}, which is more than any memory", kMaxSize);
  return make_refusal(ErrorCode::kInvalidValue, {"memory.activation_budget"},
                      "memory.activation_budget = \"{}\" is not a size", shortened(printable(*budget)))
      .with_hint("write a number above 0 and a unit, such as 2GiB or 1.5 GB");
}

} // namespace

Refusals check_recompute(const Values& values) {
  const auto* listed = values.find<Listed>("memory.recompute");
  Refusals out = check_automatic_split(values, listed);
  out.add(check_activation_budget(values, listed));
  return out;
}

} // namespace triax::config
