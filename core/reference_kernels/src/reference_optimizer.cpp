// SPDX-License-Identifier: Apache-2.0
// Optimizer updates of one flat shard.
#include <cmath>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

namespace {

const StepScalars& scalars_of(const StepScalars* scalars, Op op) {
  if (!scalars)
    throw Error(text("{}: the scalars of the step are missing", name_of(op)), {}, "set `scalars` of its arguments");
  if (scalars->skip == 0 && scalars->step < 1)
    throw Error(text("{}: step must be at least 1, got {}", name_of(op), scalars->step));
  return *scalars;
}

/// Converts the new master weights to the working copy, which the layers read.
template <class T>
void write_working(const TensorView& working, const T* master) {
  if (working.empty()) return;
  by_type(working.dtype(), [&](auto zero) {
    using W = decltype(zero);
    for (std::int64_t i = 0; i < working.elements(); ++i) working.as<W>()[i] = static_cast<W>(master[i]);
  });
}

} // namespace

void ReferenceKernels::do_adamw(const AdamW& args, const OpContext&) {
  const StepScalars& now = scalars_of(args.scalars, Op::adamw);
  if (now.skip != 0) return;
  const double correction1 = 1 - std::pow(args.beta1, static_cast<double>(now.step));
  const double correction2 = 1 - std::pow(args.beta2, static_cast<double>(now.step));
  by_type(args.master.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T *p = args.master.as<T>(), *m = args.m.as<T>(), *v = args.v.as<T>();
    for (std::int64_t i = 0; i < args.master.elements(); ++i) {
      const double g = static_cast<double>(args.gradient.as<const T>()[i]) * now.clip;
      const double first = args.beta1 * m[i] + (1 - args.beta1) * g;
      const double second = args.beta2 * v[i] + (1 - args.beta2) * g * g;
      const double update = first / correction1 / (std::sqrt(second / correction2) + args.eps) + args.decay * p[i];
      m[i] = static_cast<T>(first);
      v[i] = static_cast<T>(second);
      p[i] = static_cast<T>(p[i] - now.lr * update);
    }
    write_working(args.working, p);
  });
}

void ReferenceKernels::do_sgd(const Sgd& args, const OpContext&) {
  const StepScalars& now = scalars_of(args.scalars, Op::sgd);
  if (now.skip != 0) return;
  by_type(args.master.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T *p = args.master.as<T>(), *velocity = args.velocity.as<T>();
    for (std::int64_t i = 0; i < args.master.elements(); ++i) {
      double u = static_cast<double>(args.gradient.as<const T>()[i]) * now.clip + args.decay * p[i];
      if (args.momentum != 0) {
        if (now.step > 1) u += args.momentum * velocity[i];
        velocity[i] = static_cast<T>(u);
      }
      p[i] = static_cast<T>(p[i] - now.lr * u);
    }
    write_working(args.working, p);
  });
}

} // namespace triax::reference_kernels
