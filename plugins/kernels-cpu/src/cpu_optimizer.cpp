// SPDX-License-Identifier: Apache-2.0
// Step control, and the optimizers' updates of one flat shard.
#include <algorithm>
#include <cmath>

#include "cpu_kernels.hpp"
#include "triax/step_control.hpp"

namespace triax::kernels_cpu {

namespace {

const StepScalars& scalars_of(const StepScalars* scalars, Op op) {
  if (!scalars)
    throw Error(text("{}: the scalars of the step are missing", name_of(op)), {}, "set `scalars` of its arguments");
  if (scalars->skip == 0 && scalars->step < 1)
    throw Error(text("{}: step must be at least 1, got {}", name_of(op), scalars->step));
  return *scalars;
}

float inverse_correction(double beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step))));
}

} // namespace

// Single-threaded: it adds one number per parameter and tensor rank, and reads one per sample.
void CpuKernels::do_step_control(const StepControl& args, const OpContext&) {
  if (!args.scalars) throw Error("step_control: the scalars of the step are missing", {}, "set StepControl::scalars");
  const double *squares = args.squares.as<const double>(), *losses = args.losses.as<const double>();
  const std::int32_t* order = args.order.as<const std::int32_t>();
  double sum = 0;
  for (std::int64_t i = 0; i < args.order.elements(); ++i) sum += squares[order[i]];
  const bool finite =
      std::all_of(losses, losses + args.losses.elements(), [](double loss) { return std::isfinite(loss); });
  decide_step(*args.scalars, std::sqrt(sum), finite, args.clip_grad, args.scaling);
}

void CpuKernels::write_working(const TensorView& working, const float* master, std::int64_t begin,
                               std::int64_t n) const {
  if (working.empty()) return;
  if (working.dtype() == DType::f32) {
    std::copy_n(master + begin, n, working.as<float>() + begin);
  } else {
    half_loops(loops_, working.dtype()).narrow(working.as<std::uint16_t>() + begin, master + begin, n);
  }
}

void CpuKernels::do_adamw(const AdamW& args, const OpContext&) {
  const StepScalars& now = scalars_of(args.scalars, Op::adamw);
  if (now.skip != 0) return;
  const AdamWStep step{.lr = now.lr,
                       .clip = now.clip,
                       .beta1 = static_cast<float>(args.beta1),
                       .beta2 = static_cast<float>(args.beta2),
                       .rest1 = static_cast<float>(1 - args.beta1),
                       .rest2 = static_cast<float>(1 - args.beta2),
                       .inverse_correction1 = inverse_correction(args.beta1, now.step),
                       .inverse_correction2 = inverse_correction(args.beta2, now.step),
                       .eps = static_cast<float>(args.eps),
                       .decay = static_cast<float>(args.decay)};
  float* p = args.master.as<float>();
  by_elements(args.master.elements(), [&](std::int64_t begin, std::int64_t n) {
    loops_.adamw(p + begin, args.gradient.as<const float>() + begin, args.m.as<float>() + begin,
                 args.v.as<float>() + begin, n, step);
    write_working(args.working, p, begin, n);
  });
}

void CpuKernels::do_sgd(const Sgd& args, const OpContext&) {
  const StepScalars& now = scalars_of(args.scalars, Op::sgd);
  if (now.skip != 0) return;
  const SgdStep step{.lr = now.lr,
                     .clip = now.clip,
                     .momentum = static_cast<float>(args.momentum),
                     .decay = static_cast<float>(args.decay),
                     .first = now.step == 1};
  float* p = args.master.as<float>();
  float* velocity = args.momentum != 0 ? args.velocity.as<float>() : nullptr;
  by_elements(args.master.elements(), [&](std::int64_t begin, std::int64_t n) {
    loops_.sgd(p + begin, args.gradient.as<const float>() + begin, velocity ? velocity + begin : nullptr, n, step);
    write_working(args.working, p, begin, n);
  });
}

} // namespace triax::kernels_cpu
