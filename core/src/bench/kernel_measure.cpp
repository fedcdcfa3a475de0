// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_measure.hpp"

#include <algorithm>
#include <cmath>

#include "bench/kernel_check.hpp"
#include "triax/error.hpp"

namespace triax::bench {

namespace {

constexpr double kMaxKernelCalls = 1e6;

/// The best of several runs: the device's capability without the influence of other programs.
template <class Body>
double least_seconds(KernelSide& side, Body body) {
  double least = 1e30;
  for (int turn = 0; turn < 6; ++turn) {
    const double seconds = side.seconds_of(3, body) / 3;
    if (turn > 0) least = std::min(least, seconds);
  }
  return least;
}

double share_of_scores(const Mask& mask, const TensorView& q, const TensorView& k) {
  if (mask.kind == Mask::Kind::none) return 1;
  const std::int64_t queries = q.size(0), keys = k.size(0);
  double seen = 0;
  for (std::int64_t i = 0; i < queries; ++i)
    seen += static_cast<double>(std::clamp<std::int64_t>(mask.q0 + i - mask.k0 + 1, 0, keys));
  return seen / static_cast<double>(queries * keys);
}

/// Share of an attention's scores that a causal mask does not hide; 1 for other operations.
double share_of_scores(const OpCall& call) {
  if (call.op == Op::attention_fwd) {
    const auto& x = call.as<AttentionFwd>();
    return share_of_scores(x.mask, x.q, x.k);
  }
  if (call.op == Op::attention_bwd) {
    const auto& x = call.as<AttentionBwd>();
    return share_of_scores(x.mask, x.q, x.k);
  }
  return 1;
}

} // namespace

KernelMeasurement::KernelMeasurement(const KernelPlan& plan) : plan_(plan) {
  for (const Side& side : plan.sides)
    sides_.emplace_back(side.choice, plan.threads, sides_.empty() ? nullptr : &sides_.front());
  measure_rates();
}

DeviceRates KernelMeasurement::rates_of(KernelSide& side) const {
  const std::int64_t n = plan_.product;
  const Gemm product{.d = side.noise({n, n}, plan_.compute),
                     .a = side.noise({n, n}, plan_.compute),
                     .b = side.noise({n, n}, plan_.compute),
                     .transpose_b = true};
  const OpCall call = call_of(product);
  side.run(call);
  const double product_s = least_seconds(side, [&] { side.issue(call); });
  const Shape shape{plan_.copied_mib << 18};
  const TensorView from = side.tensor(shape), to = side.tensor(shape);
  const double copy_s = least_seconds(side, [&] { side.device().copy(to, from, side.stream()); });
  return {2 * std::pow(static_cast<double>(n), 3) / product_s, static_cast<double>(2 * from.bytes()) / copy_s};
}

bool KernelMeasurement::kinds_are_equal() const {
  return sides_[0].device().kind() == sides_[1].device().kind();
}

void KernelMeasurement::measure_rates() {
  for (KernelSide& side : sides_) rates_.push_back(rates_of(side));
  if (!have_equal_rates()) return;
  const DeviceRates highest{std::max(rates_[0].flops, rates_[1].flops), std::max(rates_[0].bytes, rates_[1].bytes)};
  rates_.assign(2, highest);
}

void KernelMeasurement::run(const std::function<void(const KernelResult&)>& report) {
  std::deque<GptOperations> operations; // one for both sides on one kind of device: they share its buffers
  for (KernelSide& side : sides_)
    if (operations.empty() || !kinds_are_equal())
      operations.emplace_back(side, plan_.shapes, plan_.compute, plan_.names);
  for (std::size_t number = 0; number < operations.front().cases().size(); ++number) {
    std::vector<const KernelCase*> of_sides;
    of_sides.reserve(sides_.size());
    for (std::size_t side = 0; side < sides_.size(); ++side)
      of_sides.push_back(&operations[std::min(side, operations.size() - 1)].cases()[number]);
    report(measure(of_sides));
  }
}

/// First from one call, then from a turn.
std::int64_t KernelMeasurement::calls_of_turn(KernelSide& side, const KernelCase& one) const {
  std::int64_t calls = 1;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const double call_s = side.seconds_of(calls, [&] { side.issue(one.call); }) / static_cast<double>(calls);
    calls = static_cast<std::int64_t>(std::clamp(plan_.turn_s / std::max(call_s, 1e-9), 1.0, kMaxKernelCalls));
  }
  return calls;
}

KernelResult KernelMeasurement::measure(const std::vector<const KernelCase*>& of_sides) {
  const OpCall& call = of_sides.front()->call;
  KernelResult out{of_sides.front()->name, call.flops * share_of_scores(call), call.bytes,
                   std::vector<KernelTimes>(sides_.size()), 0};
  std::vector<HostOutputs> outputs;
  outputs.reserve(sides_.size());
  for (std::size_t side = 0; side < sides_.size(); ++side) outputs.push_back(check_case(sides_[side], *of_sides[side]));
  for (std::size_t side = 0; side < sides_.size(); ++side)
    out.sides[side].calls = calls_of_turn(sides_[side], *of_sides[side]);
  if (sides_.size() == 2) out.difference = difference_of(outputs[0], outputs[1]);
  if (!(out.difference <= allowed_difference(plan_.compute)))
    throw Error(text("the results of {} and {} differ by {} of the largest value; rounding explains at most {}",
                     sides_[0].name(), sides_[1].name(), out.difference, allowed_difference(plan_.compute)),
                out.name, "compare each of them with kernels-reference");
  for (std::int64_t round = 0; round < plan_.rounds; ++round)
    for (const std::size_t side : turns_of_round(sides_.size(), round)) {
      const std::int64_t calls = out.sides[side].calls;
      const double seconds = sides_[side].seconds_of(calls, [&] { sides_[side].issue(of_sides[side]->call); });
      out.sides[side].turns_s.push_back(seconds / static_cast<double>(calls));
    }
  return out;
}

} // namespace triax::bench
