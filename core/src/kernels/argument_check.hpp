// SPDX-License-Identifier: Apache-2.0
// Single checks of operation arguments: each function checks one condition and throws an Error that names it.
//
// Threads: any. Errors: Error "operation: view sizes ...".
// A check that passes creates no text and does not allocate: checks run for every call of every step.
#pragma once

#include <string>
#include <string_view>

#include "triax/error.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::kernels {

/// A view and the name it has in its argument struct.
struct Named {
  const char* name;
  const TensorView& view;
};
std::string to_text(const Named& named); // "a f32[4, 8]"

/// f64 for f64 data, else f32: the type of means, maxima and sums.
inline DType statistic_type(DType data) {
  return data == DType::f64 ? DType::f64 : DType::f32;
}

/// Rows of a view seen as [rows, last].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}

class Check {
 public:
  explicit Check(Op op) : op_(op) {}

  template <class... Args>
  void require(bool condition, std::string_view pattern, const Args&... arguments) const {
    if (!condition) [[unlikely]]
      fail(triax::text(pattern, arguments...));
  }
  [[noreturn]] void fail(const std::string& what) const;

  void given(const Named& a) const { require(!a.view.empty(), "{} is missing", a.name); }
  void type(const Named& a, DType type) const {
    given(a);
    require(a.view.dtype() == type, "{} must be {}", a, name_of(type));
  }
  void same_type(const Named& a, const Named& b) const;
  /// The type of `data`; f32 is also allowed if `data` is bf16 or f16.
  void accumulator_type(const Named& a, const Named& data) const;
  void rank(const Named& a, int rank) const {
    given(a);
    require(a.view.rank() == rank, "{} must have {} dimensions", a, rank);
  }
  /// The last stride is 1.
  void dense(const Named& a) const {
    require(a.view.size(-1) <= 1 || a.view.stride(-1) == 1, "{} has the last stride {}; it must be 1", a,
            a.view.stride(-1));
  }
  void contiguous(const Named& a) const {
    given(a);
    require(a.view.contiguous(), "{} is strided; it must be contiguous", a);
  }
  void same_shape(const Named& a, const Named& b) const;

  /// A floating contiguous view of at least one dimension.
  void data(const Named& a) const;
  /// Floating data with the type, rows and last dimension of `like`.
  void match(const Named& a, const Named& like) const;
  /// A contiguous view of `count` elements; `of` says what is counted: "rows" of x f32[4, 8].
  void count(const Named& a, std::int64_t count, const char* of, const Named& like) const;
  /// A statistic: one number of statistic_type for each row of `like`.
  void statistic(const Named& a, const Named& like) const;
  /// A vector along the last dimension of `like`, of its type.
  void vector(const Named& a, const Named& like) const;
  /// A vector along the last dimension of `like` that is the target of a "+=".
  void gradient_vector(const Named& a, const Named& like) const;

  /// The range of the global tensor that a view covers: its number of samples, rows and columns.
  void drop(const Drop& drop, std::int64_t samples, std::int64_t rows, std::int64_t columns) const;
  void mask(const Mask& mask, std::int64_t samples) const;

 private:
  Op op_;
};

// One function per operation.
#define TRIAX_OP(Args, name) void check(const Args& args);
TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

} // namespace triax::kernels
