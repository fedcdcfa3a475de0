// SPDX-License-Identifier: Apache-2.0
#include "triax/tensor.hpp"

#include "triax/error.hpp"

namespace triax {

namespace {

constexpr std::string_view kNames[] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8"};

std::array<std::int64_t, kMaxRank> dense_strides(const Shape& shape) {
  std::array<std::int64_t, kMaxRank> strides{};
  std::int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = step;
    step *= shape[dim];
  }
  return strides;
}

} // namespace

std::string_view name_of(DType type) noexcept {
  return kNames[static_cast<std::size_t>(type)];
}

Shape::Shape(std::initializer_list<std::int64_t> sizes) {
  TRIAX_REQUIRE(sizes.size() <= kMaxRank, "a tensor has at most {} dimensions, not {}", kMaxRank, sizes.size());
  for (const std::int64_t size : sizes) {
    TRIAX_REQUIRE(size >= 0, "a dimension cannot have the size {}", size);
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }
}

std::string to_text(const Shape& shape) {
  std::string out = "[";
  for (int dim = 0; dim < shape.rank(); ++dim) out += (dim ? ", " : "") + std::to_string(shape[dim]);
  return out + "]";
}

TensorView::TensorView(void* data, DType dtype, const Shape& shape)
    : TensorView(data, dtype, shape, dense_strides(shape)) {}

TensorView::TensorView(void* data, DType dtype, const Shape& shape, const std::array<std::int64_t, kMaxRank>& strides)
    : data_(data), dtype_(dtype), shape_(shape), strides_(strides) {}

TensorView TensorView::slice(int dim, std::int64_t begin, std::int64_t end) const {
  if (dim < 0) dim += rank();
  TRIAX_REQUIRE(dim >= 0 && dim < rank() && 0 <= begin && begin <= end && end <= size(dim),
                "slice [{}, {}) of dimension {} is outside {}", begin, end, dim, to_text(*this));
  TensorView part = *this;
  part.shape_[dim] = end - begin;
  if (data_)
    part.data_ = static_cast<std::byte*>(data_) + begin * stride(dim) * static_cast<std::int64_t>(bytes_of(dtype_));
  return part;
}

TensorView TensorView::at(std::int64_t index) const {
  const TensorView one = slice(0, index, index + 1);
  TensorView part;
  part.data_ = one.data_;
  part.dtype_ = dtype_;
  switch (rank()) {
    case 1:
      part.shape_ = Shape{};
      break;
    case 2:
      part.shape_ = Shape{size(1)};
      break;
    case 3:
      part.shape_ = Shape{size(1), size(2)};
      break;
    default:
      part.shape_ = Shape{size(1), size(2), size(3)};
      break;
  }
  for (int dim = 1; dim < rank(); ++dim) part.strides_[static_cast<std::size_t>(dim - 1)] = stride(dim);
  return part;
}

TensorView TensorView::reshape(const Shape& shape) const {
  TRIAX_REQUIRE(contiguous() && shape.elements() == elements(), "{} cannot be viewed as {}", to_text(*this),
                to_text(shape));
  return {data_, dtype_, shape};
}

TensorView TensorView::as_rows() const {
  const std::int64_t last = rank() == 0 ? 1 : size(-1);
  return reshape({last == 0 ? 0 : elements() / last, last});
}

TensorView TensorView::flat() const {
  return reshape({elements()});
}

std::string to_text(const TensorView& view) {
  return std::string(name_of(view.dtype())) + to_text(view.shape());
}

} // namespace triax
