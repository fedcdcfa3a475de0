// SPDX-License-Identifier: Apache-2.0
// The rules of the operation step_control, in one function, so that all kernel sets and all ranks decide the same.
//
// Threads: pure function. Ownership, blocking, errors: none. Plain arithmetic without calls, so that kernel sets for
// any device may use it (nvcc: --expt-relaxed-constexpr).
#pragma once

#include "triax/kernel_ops.hpp"

namespace triax {

/// `scaled_norm`: norm of the gradient as stored, that is, multiplied by loss_scale. `finite`: all losses of the step
/// are finite. If `scaled_norm` or a loss is not finite, the step is skipped: the optimizer leaves weights, state and
/// `step` unchanged. Otherwise `clip` becomes the factor that clips the gradient and divides it by loss_scale.
/// loss_scale becomes the scale of the next step.
constexpr void decide_step(StepScalars& now, double scaled_norm, bool finite, double clip_grad,
                           const LossScaling& scaling) noexcept {
  constexpr float kMax = 3.402823466e+38f;
  const double scale = static_cast<double>(now.loss_scale);
  now.grad_norm = scaled_norm / scale;
  if (!finite || scaled_norm - scaled_norm != 0) { // infinity or NaN; NOLINT(misc-redundant-expression)
    now.skip = 1;
    now.good_steps = 0;
    if (now.hysteresis > 0) --now.hysteresis;
    if (now.hysteresis > 0) return;
    const float less = now.loss_scale * scaling.backoff;
    now.loss_scale = less < scaling.min ? scaling.min : less;
    return;
  }
  const double within = clip_grad > 0 ? clip_grad / (now.grad_norm + 1e-6) : 1;
  now.clip = static_cast<float>((within < 1 ? within : 1) / scale);
  now.skip = 0;
  ++now.step;
  if (scaling.window <= 0 || ++now.good_steps < scaling.window) return;
  now.good_steps = 0;
  now.hysteresis = scaling.hysteresis;
  const float more = now.loss_scale * scaling.growth;
  if (more <= kMax) now.loss_scale = more; // as torch does: a scale of infinity could never decrease
}

} // namespace triax
