// SPDX-License-Identifier: Apache-2.0
#include "triax/tensor.hpp"

#include "triax/error.hpp"

namespace triax {

namespace {

struct TypeRow {
  DType type;
  std::size_t bytes;
  std::string_view name;
  bool floating;
};

constexpr TypeRow kTypes[] = {
    {DType::f32, 4, "f32", true}, {DType::f64, 8, "f64", true},  {DType::bf16, 2, "bf16", true},
    {DType::f16, 2, "f16", true}, {DType::i32, 4, "i32", false}, {DType::i64, 8, "i64", false},
    {DType::u8, 1, "u8", false},
};

const TypeRow& row_of(DType type) noexcept {
  return kTypes[static_cast<std::size_t>(type)];
}

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

std::size_t bytes_of(DType type) noexcept {
  return row_of(type).bytes;
}
std::string_view name_of(DType type) noexcept {
  return row_of(type).name;
}
bool is_floating(DType type) noexcept {
  return row_of(type).floating;
}

Shape::Shape(std::initializer_list<std::int64_t> sizes) {
  TRIAX_REQUIRE(sizes.size() <= kMaxRank, "a tensor has at most {} dimensions, not {}", kMaxRank, sizes.size());
  for (const std::int64_t size : sizes) {
    TRIAX_REQUIRE(size >= 0, "a dimension cannot have the size {}", size);
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }
}

std::int64_t Shape::elements() const noexcept {
  std::int64_t product = 1;
  for (int dim = 0; dim < rank_; ++dim) product *= sizes_[static_cast<std::size_t>(dim)];
  return product;
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

bool TensorView::contiguous() const noexcept {
  std::int64_t step = 1;
  for (int dim = rank() - 1; dim >= 0; --dim) {
    if (size(dim) != 1 && stride(dim) != step) return false;
    step *= size(dim);
  }
  return true;
}

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
