// Views of memory: element type, sizes, strides. No view owns anything.
//
// Threads: values, any thread. Ownership: the memory belongs to an arena (device.hpp) or to whoever made the view.
// Blocking: never. A view says nothing about which device its memory is on; the kernel set and the communicator that
// get it work on the rank's one device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64, u8 };

TRIAX_API std::size_t bytes_of(DType type) noexcept;
TRIAX_API std::string_view name_of(DType type) noexcept; // "f32"
TRIAX_API bool is_floating(DType type) noexcept;

inline constexpr int kMaxRank = 4;

/// Sizes of up to four dimensions, outermost first.
class TRIAX_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int dim) const noexcept { return sizes_[dim < 0 ? rank_ + dim : dim]; }
  std::int64_t& operator[](int dim) noexcept { return sizes_[dim < 0 ? rank_ + dim : dim]; }
  std::int64_t elements() const noexcept; // 1 for rank 0
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

TRIAX_API std::string to_text(const Shape& shape); // "[256, 1, 384]"

/// A strided view of at most four dimensions. Strides are in elements. A default view has no data and rank 0.
class TRIAX_API TensorView {
 public:
  TensorView() = default;
  /// Contiguous, last dimension fastest.
  TensorView(void* data, DType dtype, const Shape& shape);
  TensorView(void* data, DType dtype, const Shape& shape, const std::array<std::int64_t, kMaxRank>& strides);

  void* data() const noexcept { return data_; }
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  bool empty() const noexcept { return data_ == nullptr && shape_.rank() == 0; } // "not given"
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t size(int dim) const noexcept { return shape_[dim]; }
  std::int64_t stride(int dim) const noexcept { return strides_[dim < 0 ? shape_.rank() + dim : dim]; }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements()) * bytes_of(dtype_); }
  bool contiguous() const noexcept;

  /// [begin, end) of dimension `dim`; throws Error outside its size.
  TensorView slice(int dim, std::int64_t begin, std::int64_t end) const;
  /// One index of the outermost dimension, which is dropped.
  TensorView at(std::int64_t index) const;
  /// The same elements under other sizes; throws Error unless contiguous and of equal number.
  TensorView reshape(const Shape& shape) const;
  /// Contiguous view seen as [rows, last]: every dimension but the last joined. Throws Error unless contiguous.
  TensorView as_rows() const;
  /// Contiguous view seen as one dimension. Throws Error unless contiguous.
  TensorView flat() const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::array<std::int64_t, kMaxRank> strides_{};
};

TRIAX_API std::string to_text(const TensorView& view); // "f32[256, 1, 384]"

} // namespace triax
