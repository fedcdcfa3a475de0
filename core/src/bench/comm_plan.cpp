// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_plan.hpp"

#include <nlohmann/json.hpp>

#include "base/scaled_text.hpp"
#include "bench/byte_sizes.hpp"
#include "bench/exact_values.hpp"
#include "triax/error.hpp"

namespace triax::bench {

namespace {

using PlanJson = nlohmann::json;

void check_sizes(const CommPlan& plan, Refusals& out) {
  const std::int64_t unit = size_unit(plan.operation, plan.dtype, plan.ranks);
  for (const std::int64_t size : plan.sizes) {
    if (size % unit == 0) continue;
    const bool parts = unit > static_cast<std::int64_t>(bytes_of(plan.dtype));
    out.add(
        make_refusal(ErrorCode::kNotDivisible, {"--sizes"}, "--sizes {}: {} is not divisible by {} bytes (one {}{})",
                     bytes_text(size), size, unit, name_of(plan.dtype),
                     parts ? text(" for each of {} ranks", plan.ranks) : std::string())
            .with_hint("use sizes that are multiples of {}: --sizes {}", unit, bytes_text((size / unit + 1) * unit)));
    return; // the others have the same cause
  }
}

} // namespace

Refusals check(const CommPlan& plan) {
  Refusals out;
  check_sizes(plan, out);
  if (reduces(plan.operation) && plan.dtype == DType::u8)
    out.add(make_refusal(ErrorCode::kUnsupported, {"--dtype", "--op"}, "--dtype u8: {} cannot add bytes",
                         name_of(plan.operation))
                .with_hint("use --dtype f32, or --op all_gather, all_to_all, broadcast or exchange"));
  else if (reduces(plan.operation) && plan.ranks > max_exact_ranks(plan.dtype))
    out.add(make_refusal(ErrorCode::kUnsupported, {"--dtype", "--ranks"},
                         "--dtype {}: sums of {} ranks are not exact, so the result cannot be checked",
                         name_of(plan.dtype), plan.ranks)
                .with_hint("use --dtype f32, or at most {} ranks", max_exact_ranks(plan.dtype)));
  if (plan.operation == CommOperation::send && plan.ranks % 2 != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible, {"--ranks", "--op"},
                         "--op send needs an even number of ranks, got {}: it pairs rank 0 with rank 1, and so on",
                         plan.ranks)
                .with_hint("use an even number of ranks"));
  out.add(check_sides(plan.sides, plan.rounds, plan.may_be_equal, "comm"));
  return out;
}

Refusals check_memory(const CommPlan& plan, int ranks, std::int64_t free_bytes) {
  const auto element = static_cast<std::int64_t>(bytes_of(plan.dtype));
  const CommShape shape = shape_of(plan.operation, plan.sizes.back() / element, plan.ranks);
  const double needed = static_cast<double>(shape.in + shape.out) * static_cast<double>(element) * ranks *
                        static_cast<double>(plan.sides.size());
  if (free_bytes == 0 || needed <= static_cast<double>(free_bytes)) return {};
  return make_refusal(ErrorCode::kOutOfMemory, {"--sizes", "--ranks"},
                      "--sizes {}: the buffers of {} rank{} need {}, but this machine has {} of free memory",
                      bytes_text(plan.sizes.back()), ranks, ranks == 1 ? "" : "s", scaled_text(needed, "B"),
                      scaled_text(static_cast<double>(free_bytes), "B"))
      .with_hint("use smaller sizes or fewer ranks");
}

double mean_s(const SideTimes& times) {
  return mean_of(times.turns_s);
}

compare::Ratio ratio_of(const SizeResult& result) {
  return ratio_of_turns(result.sides.at(0).turns_s, result.sides.at(1).turns_s);
}

std::string to_line(const SizeResult& result) {
  PlanJson sides = PlanJson::array();
  for (const SideTimes& times : result.sides)
    sides.push_back({times.calls, times.turns_s, times.min_s, times.p50_s, times.p99_s});
  return PlanJson::array({result.bytes, sides}).dump();
}

SizeResult read_size_result(const std::string& line) {
  try {
    const PlanJson json = PlanJson::parse(line);
    SizeResult out{json.at(0), {}};
    for (const PlanJson& side : json.at(1))
      out.sides.push_back({side.at(0), side.at(1), side.at(2), side.at(3), side.at(4)});
    return out;
  } catch (const PlanJson::exception& error) {
    throw Error(text("malformed result of a rank: {}", error.what()));
  }
}

} // namespace triax::bench
