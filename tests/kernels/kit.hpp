// SPDX-License-Identifier: Apache-2.0
// Arrays and calls for tests of the formulas that kernel sets are compared with, and gradient checks by finite
// differences.
//
// Ownership: an Array owns its elements. Operations run inside the call.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/formulas.hpp"
#include "support/loaded_kernels.hpp"

namespace triax::test {

/// Elements of one type with a shape.
template <class T, DType type>
struct ArrayOf {
  std::vector<T> data;
  Shape shape;

  ArrayOf(const Shape& sizes, T value) : data(static_cast<std::size_t>(sizes.elements()), value), shape(sizes) {}
  ArrayOf(const Shape& sizes, std::vector<T> values) : data(std::move(values)), shape(sizes) {}
  operator TensorView() { return {data.data(), type, shape}; } // NOLINT: arrays are passed where views are expected
  T& operator[](std::int64_t i) { return data[static_cast<std::size_t>(i)]; }
  const T& operator[](std::int64_t i) const { return data[static_cast<std::size_t>(i)]; }
};
using Array = ArrayOf<double, DType::f64>;
using Floats = ArrayOf<float, DType::f32>;
using Ints = ArrayOf<std::int32_t, DType::i32>;
using Longs = ArrayOf<std::int64_t, DType::i64>;

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A view without memory, for what looks only at types and shapes.
inline TensorView f32(const Shape& shape) {
  return {nullptr, DType::f32, shape};
}

/// Numbers in [low, high) that depend on `seed`.
inline Array random(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
  Array array(shape, 0.0);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const PhiloxBlock block = philox_at(philox_key(99, RandomPurpose::test), static_cast<std::uint64_t>(i), seed, 0);
    array[i] = low + (high - low) * uniform(block[static_cast<std::size_t>(i % 4)]);
  }
  return array;
}
/// NaN: an output before it is written.
inline Array unwritten(const Shape& shape) {
  return {shape, kNan};
}
inline double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) sum += a.data[i] * b.data[i];
  return sum;
}

/// The formulas of the conformance suite, and a stream.
class FormulasTest : public ::testing::Test {
 protected:
  template <class Args>
  void run(const Args& args) {
    formulas_.issue(call_of(args), {*stream_, {}});
  }
  Stream& stream() { return *stream_; }
  /// Compares `gradient` with central differences of loss() by the elements of `x`, which loss() reads.
  static void check_gradient(const std::string& what, Array& x, const Array& gradient,
                             const std::function<double()>& loss, double tolerance = 1e-7) {
    ASSERT_EQ(x.data.size(), gradient.data.size());
    double magnitude = 1e-3;
    for (const double g : gradient.data) magnitude = std::max(magnitude, std::abs(g));
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
      const double kept = x[i], step = 1e-5;
      x[i] = kept + step;
      const double above = loss();
      x[i] = kept - step;
      const double below = loss();
      x[i] = kept;
      ASSERT_NEAR((above - below) / (2 * step), gradient[i], tolerance * magnitude) << what << " by element " << i;
    }
    loss(); // recomputes what the forward stores for the original x
  }

 private:
  conformance::Formulas formulas_;
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("test");
};

inline void expect_near(const Array& got, const Array& want, double tolerance, const std::string& what = {}) {
  ASSERT_EQ(got.data.size(), want.data.size());
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    ASSERT_NEAR(got.data[i], want.data[i], tolerance) << what << " at " << i;
  }
}

} // namespace triax::test
