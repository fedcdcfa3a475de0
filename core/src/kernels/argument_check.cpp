// SPDX-License-Identifier: Apache-2.0
// The single checks of operation arguments, and their error messages.
#include "kernels/argument_check.hpp"

#include "triax/kernels.hpp"

namespace triax::kernels {

std::string to_text(const Named& named) {
  return triax::text("{} {}", named.name, named.view);
}

void Check::fail(const std::string& what) const {
  throw Error(triax::text("{}: {}", name_of(op_), what));
}

void Check::same_type(const Named& a, const Named& b) const {
  require(a.view.dtype() == b.view.dtype(), "{} and {} differ in type", a, b);
}

void Check::accumulator_type(const Named& a, const Named& data) const {
  const DType type = data.view.dtype();
  const bool narrow = type == DType::bf16 || type == DType::f16;
  require(a.view.dtype() == type || (narrow && a.view.dtype() == DType::f32),
          narrow ? "{} must be f32 or have the type of {}" : "{} must have the type of {}", a, data);
}

void Check::same_shape(const Named& a, const Named& b) const {
  require(a.view.shape() == b.view.shape(), "{} and {} differ in shape", a, b);
}

void Check::data(const Named& a) const {
  given(a);
  require(is_floating(a.view.dtype()), "{} must be of a floating type", a);
  require(a.view.rank() >= 1, "{} must have at least one dimension", a);
  contiguous(a);
}

void Check::match(const Named& a, const Named& like) const {
  data(a);
  same_type(a, like);
  require(a.view.size(-1) == like.view.size(-1) && a.view.elements() == like.view.elements(), "{} does not fit {}", a,
          like);
}

void Check::count(const Named& a, std::int64_t count, const char* of, const Named& like) const {
  contiguous(a);
  require(a.view.elements() == count, "{} has {} elements; it needs {}, the {} of {}", a, a.view.elements(), count, of,
          like);
}

void Check::statistic(const Named& a, const Named& like) const {
  type(a, statistic_type(like.view.dtype()));
  count(a, rows_of(like.view), "rows", like);
}

void Check::vector(const Named& a, const Named& like) const {
  count(a, like.view.size(-1), "last dimension", like);
  same_type(a, like);
}

void Check::gradient_vector(const Named& a, const Named& like) const {
  count(a, like.view.size(-1), "last dimension", like);
  accumulator_type(a, like);
}

void Check::drop(const Drop& drop, std::int64_t samples, std::int64_t rows, std::int64_t columns) const {
  require(drop.p >= 0 && drop.p < 1, "drop.p must be in [0, 1), got {}", drop.p);
  if (drop.p == 0) return;
  const Named numbers{"drop.samples", drop.samples};
  type(numbers, DType::i64);
  contiguous(numbers);
  require(drop.samples.elements() == samples, "{} must name {} samples", numbers, samples);
  require(drop.head0 >= 0 && drop.row0 >= 0 && drop.column0 >= 0,
          "drop.head0 = {}, row0 = {}, column0 = {}: they must not be negative", drop.head0, drop.row0, drop.column0);
  require(drop.row0 + rows <= drop.rows, "dropout covers rows [{}, {}) of a tensor of drop.rows = {}", drop.row0,
          drop.row0 + rows, drop.rows);
  require(drop.column0 + columns <= drop.width, "dropout covers columns [{}, {}) of a tensor of drop.width = {}",
          drop.column0, drop.column0 + columns, drop.width);
}

void Check::mask(const Mask& mask, std::int64_t samples) const {
  require(mask.q0 >= 0 && mask.k0 >= 0, "mask.q0 = {}, k0 = {}: they must not be negative", mask.q0, mask.k0);
  if (mask.lengths.empty()) return;
  const Named lengths{"mask.lengths", mask.lengths};
  type(lengths, DType::i32);
  contiguous(lengths);
  require(mask.lengths.elements() == samples, "{} must have the lengths of {} samples", lengths, samples);
}

} // namespace triax::kernels
