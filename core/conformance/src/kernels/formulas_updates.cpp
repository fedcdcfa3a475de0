// SPDX-License-Identifier: Apache-2.0
// Reductions over whole tensors, decisions about a step, and optimizers.
#include <cmath>
#include <vector>

#include "formulas.hpp"
#include "triax/element_type.hpp"
#include "triax/error.hpp"
#include "triax/step_control.hpp"

namespace triax::conformance::formulas {

namespace {

const StepScalars& scalars_of_step(const StepScalars* scalars, Op op) {
  TRIAX_REQUIRE(scalars != nullptr, "{}: the scalars of the step are missing; set `scalars` of its arguments",
                name_of(op));
  TRIAX_REQUIRE(scalars->skip != 0 || scalars->step >= 1, "{}: step must be at least 1, got {}", name_of(op),
                scalars->step);
  return *scalars;
}

void write_working(const TensorView& working, const TensorView& master) {
  if (working.empty()) return;
  with_type_among<float, double>(working.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < master.elements(); ++i) working.as<T>()[i] = static_cast<T>(element(master, i));
  });
}

} // namespace

void compute(const SumSquares& args) {
  double sum = 0;
  for (std::int64_t i = 0; i < args.x.elements(); ++i) sum += element(args.x, i) * element(args.x, i);
  element(args.out, 0) = sum;
}

void compute(const StepControl& args) {
  TRIAX_REQUIRE(args.scalars != nullptr, "step_control: the scalars of the step are missing; set StepControl::scalars");
  double sum = 0;
  for (std::int64_t i = 0; i < args.order.elements(); ++i)
    sum += element(args.squares, args.order.as<const std::int32_t>()[i]);
  bool is_finite = true;
  for (std::int64_t i = 0; i < args.losses.elements(); ++i)
    is_finite = is_finite && std::isfinite(element(args.losses, i));
  decide_step(*args.scalars, std::sqrt(sum), is_finite, args.clip_grad, args.scaling);
}

void compute(const AdamW& args) {
  const StepScalars& now = scalars_of_step(args.scalars, Op::adamw);
  if (now.skip != 0) return;
  const double lr = static_cast<double>(now.lr), clip = static_cast<double>(now.clip);
  const double step = static_cast<double>(now.step);
  for (std::int64_t i = 0; i < args.master.elements(); ++i) {
    double &p = element(args.master, i), &m = element(args.m, i), &v = element(args.v, i);
    const double g = element(args.gradient, i) * clip;
    m = args.beta1 * m + (1 - args.beta1) * g;
    v = args.beta2 * v + (1 - args.beta2) * g * g;
    const double mean = m / (1 - std::pow(args.beta1, step)), square = v / (1 - std::pow(args.beta2, step));
    p -= lr * (mean / (std::sqrt(square) + args.eps) + args.decay * p);
  }
  write_working(args.working, args.master);
}

void compute(const Sgd& args) {
  const StepScalars& now = scalars_of_step(args.scalars, Op::sgd);
  if (now.skip != 0) return;
  for (std::int64_t i = 0; i < args.master.elements(); ++i) {
    double& p = element(args.master, i);
    double update = element(args.gradient, i) * static_cast<double>(now.clip) + args.decay * p;
    if (args.momentum != 0) {
      double& u = element(args.velocity, i);
      u = now.step == 1 ? update : args.momentum * u + update;
      update = u;
    }
    p -= static_cast<double>(now.lr) * update;
  }
  write_working(args.working, args.master);
}

void compute(const MultiAdamW& args) {
  for (const AdamW& shard : args.shards) compute(shard);
}

} // namespace triax::conformance::formulas
