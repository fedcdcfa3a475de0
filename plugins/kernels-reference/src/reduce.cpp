// Norms, scaling and the search for values that are not finite.
#include <cmath>

#include "kernels.hpp"

namespace triax::reference {

void ReferenceKernels::do_sum_squares(const SumSquares& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = args.x.as<const T>();
    double sum = 0;
    for (std::int64_t i = 0; i < args.x.elements(); ++i) sum += static_cast<double>(x[i]) * x[i];
    *args.out.as<double>() = sum;
  });
}

void ReferenceKernels::do_scale(const Scale& args, const OpContext&) {
  const double factor = *args.factor.as<const float>();
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* x = args.x.as<T>();
    for (std::int64_t i = 0; i < args.x.elements(); ++i) x[i] = static_cast<T>(x[i] * factor);
  });
}

void ReferenceKernels::do_nonfinite(const Nonfinite& args, const OpContext&) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = args.x.as<const T>();
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < args.x.elements(); ++i) count += std::isfinite(x[i]) ? 0 : 1;
    *args.count.as<std::int32_t>() += count;
  });
}

} // namespace triax::reference
