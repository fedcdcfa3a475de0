// SPDX-License-Identifier: Apache-2.0
// Tensor views: element type, sizes, strides. A view does not own memory.
//
// Threads: values, any thread. Ownership: the memory belongs to an arena (device.hpp) or to the code that created the
// view. Blocking: never. Errors: Error.
// A view does not record its device: all tensors of a rank are on the rank's device, unless a function asks for host
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Element type of a tensor.
enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, u8 };

// Every operation of every step checks its views, so what the checks read is inline.

/// Size of an element; whether it is a floating-point number.
/// @{
constexpr std::size_t bytes_of(DType type) noexcept {
  constexpr std::uint8_t kBytes[] = {4, 8, 2, 2, 4, 8, 1};
  return kBytes[static_cast<std::size_t>(type)];
}
constexpr bool is_floating(DType type) noexcept {
  return type <= DType::f16;
}
/// @}
/// "f32"
TRIAX_API std::string_view name_of(DType type) noexcept;

/// Largest number of dimensions.
inline constexpr int kMaxRank = 4;

/// Sizes of up to four dimensions, outermost first.
class TRIAX_API Shape {
 public:
  Shape() = default;
  /// Throws Error for more than kMaxRank sizes, or a negative one.
  Shape(std::initializer_list<std::int64_t> sizes);

  /// Number of dimensions.
  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int dim) const noexcept { return sizes_[dim < 0 ? rank_ + dim : dim]; }
  std::int64_t& operator[](int dim) noexcept { return sizes_[dim < 0 ? rank_ + dim : dim]; }
  /// 1 if there are no dimensions.
  std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (int dim = 0; dim < rank_; ++dim) product *= sizes_[static_cast<std::size_t>(dim)];
    return product;
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

/// "[256, 1, 384]"
TRIAX_API std::string to_text(const Shape& shape);

/// A strided view of at most four dimensions. Strides are in elements. A default view has no data and no dimensions.
class TRIAX_API TensorView {
 public:
  TensorView() = default;
  /// Contiguous, last dimension fastest.
  TensorView(void* data, DType dtype, const Shape& shape);
  TensorView(void* data, DType dtype, const Shape& shape, const std::array<std::int64_t, kMaxRank>& strides);

  /// The first element, without and with a type; null in a dry run.
  /// @{
  void* data() const noexcept { return data_; }
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  /// @}
  /// Whether it is a default view: an argument that was not given.
  bool empty() const noexcept { return data_ == nullptr && shape_.rank() == 0; }
  /// Type, shape and strides. A dimension of -1 is the last one.
  /// @{
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t size(int dim) const noexcept { return shape_[dim]; }
  std::int64_t stride(int dim) const noexcept { return strides_[dim < 0 ? shape_.rank() + dim : dim]; }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements()) * bytes_of(dtype_); }
  /// @}
  /// Whether the elements follow one another, the last dimension fastest.
  bool contiguous() const noexcept {
    std::int64_t step = 1;
    for (int dim = rank() - 1; dim >= 0; --dim) {
      if (size(dim) != 1 && stride(dim) != step) return false;
      step *= size(dim);
    }
    return true;
  }

  /// Elements [begin, end) of dimension `dim`. Throws Error if the range is outside the dimension.
  TensorView slice(int dim, std::int64_t begin, std::int64_t end) const;
  /// The part at `index` of the outermost dimension; the result has one dimension less. Throws Error if the index is
  /// outside the dimension.
  TensorView at(std::int64_t index) const;
  /// The same elements with another shape. Throws Error if the view is not contiguous or the number of elements
  /// differs.
  TensorView reshape(const Shape& shape) const;
  /// [rows, last]: all dimensions but the last are joined. Throws Error if the view is not contiguous.
  TensorView as_rows() const;
  /// One dimension with all elements. Throws Error if the view is not contiguous.
  TensorView flat() const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::array<std::int64_t, kMaxRank> strides_{};
};

/// "f32[256, 1, 384]"
TRIAX_API std::string to_text(const TensorView& view);

} // namespace triax
