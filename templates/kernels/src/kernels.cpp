// SPDX-License-Identifier: Apache-2.0
// kernels-template: the reference operations, and an implementation of one: the gradient of a bias, which is the sum
// over the rows of a matrix. It reads memory in order, where the reference reads each column with the stride of a row.
#include <algorithm>
#include <triax/element_type.hpp>
#include <triax/plugin.hpp>
#include <triax/reference_kernels.hpp>

namespace {
using namespace triax;

/// Columns whose sums are kept at a time, in registers and the nearest cache. Fixed: the order in which a sum is added
/// must not depend on time, threads or addresses.
constexpr std::int64_t kColumns = 64;

/// dbias [n] += the sum of each column of dy [rows, n], in row order.
template <class T>
void add_rows(T* dbias, const T* dy, std::int64_t rows, std::int64_t n) {
  for (std::int64_t first = 0; first < n; first += kColumns) {
    const std::int64_t width = std::min(kColumns, n - first);
    double sums[kColumns] = {};
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < width; ++j) sums[j] += static_cast<double>(dy[r * n + first + j]);
    for (std::int64_t j = 0; j < width; ++j) dbias[first + j] = static_cast<T>(dbias[first + j] + sums[j]);
  }
}

class DerivedKernels final : public reference_kernels::ReferenceKernels {
 public:
  DerivedKernels() : ReferenceKernels("kernels-template") {}

 protected:
  // Views have been checked: dy is contiguous, dbias has its columns, and supports() has accepted their type.
  void do_bias_bwd(const BiasBwd& args, const OpContext&) override {
    const std::int64_t n = args.dy.size(-1);
    if (n == 0) return;
    with_type_among<float, double>(args.dy.dtype(), [&]<class T>(T) {
      add_rows(args.dbias.as<T>(), args.dy.as<const T>(), args.dy.elements() / n, n);
    });
  }
};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, DerivedKernels, "kernels-template", "0.1.0",
             "the reference operations, with another gradient of biases", nullptr)
