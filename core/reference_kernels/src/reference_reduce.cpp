// SPDX-License-Identifier: Apache-2.0
// Sums of squares, and step control, which uses them.
#include <algorithm>
#include <cmath>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"
#include "triax/step_control.hpp"

namespace triax::reference_kernels {

void ReferenceKernels::do_sum_squares(const SumSquares& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = args.x.as<const T>();
    double sum = 0;
    for (std::int64_t i = 0; i < args.x.elements(); ++i) sum += static_cast<double>(x[i]) * x[i];
    *args.out.as<double>() = sum;
  });
}

void ReferenceKernels::do_step_control(const StepControl& args, const OpContext&) {
  if (!args.scalars) throw Error("step_control: the scalars of the step are missing", {}, "set StepControl::scalars");
  double sum = 0;
  for (std::int64_t i = 0; i < args.order.elements(); ++i)
    sum += args.squares.as<const double>()[args.order.as<const std::int32_t>()[i]];
  const double* losses = args.losses.as<const double>();
  const bool finite =
      std::all_of(losses, losses + args.losses.elements(), [](double loss) { return std::isfinite(loss); });
  decide_step(*args.scalars, std::sqrt(sum), finite, args.clip_grad, args.scaling);
}

} // namespace triax::reference_kernels
