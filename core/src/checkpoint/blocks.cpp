// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "triax/element_type.hpp"

namespace triax::checkpoint {

void for_each_block(const Shape& shape, const std::function<void(const Shape& begin, const Shape& size)>& body) {
  if (shape.elements() == 0) return;
  if (shape.rank() == 0) return body(shape, shape);
  // Dimensions after `split` are complete in every block, and those before it have one index.
  int split = shape.rank() - 1;
  std::int64_t inner = 1;
  while (split > 0 && inner * shape[split] <= kBlockElements) inner *= shape[split--];
  const std::int64_t rows = kBlockElements / inner;
  Shape begin = shape, size = shape;
  for (int dim = 0; dim < shape.rank(); ++dim) begin[dim] = 0;
  for (int dim = 0; dim < split; ++dim) size[dim] = 1;
  while (true) {
    for (begin[split] = 0; begin[split] < shape[split]; begin[split] += rows) {
      size[split] = std::min(rows, shape[split] - begin[split]);
      body(begin, size);
    }
    begin[split] = 0;
    int dim = split - 1;
    while (dim >= 0 && ++begin[dim] == shape[dim]) begin[dim--] = 0;
    if (dim < 0) return;
  }
}

void to_doubles(DType type, const std::byte* from, std::span<double> out) {
  with_type(type, [&](auto of) {
    using Element = decltype(of);
    for (std::size_t i = 0; i < out.size(); ++i) {
      Element element;
      std::memcpy(&element, from + i * sizeof element, sizeof element);
      out[i] = static_cast<double>(element);
    }
  });
}

std::size_t from_doubles(std::span<const double> values, DType type, std::byte* to) {
  std::size_t overflows = 0;
  with_type_among<float, double, Bf16, F16>(type, [&](auto of) {
    using Element = decltype(of);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto element = static_cast<Element>(values[i]);
      if (std::isinf(static_cast<double>(element)) && std::isfinite(values[i])) ++overflows;
      std::memcpy(to + i * sizeof element, &element, sizeof element);
    }
  });
  return overflows;
}

} // namespace triax::checkpoint
