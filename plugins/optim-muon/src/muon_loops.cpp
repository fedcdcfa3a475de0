// SPDX-License-Identifier: Apache-2.0
#include "muon_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <triax/element_type.hpp>

namespace triax::optim_muon {

namespace {

constexpr double kNormEps = 1e-7; // added to norms: a gradient of zeros changes nothing

template <class T>
void momentum_loop(const ParameterShard& shard, const Momentum& of, const TensorView& direction) {
  T *m = shard.state[0].as<T>(), *to = direction.as<T>();
  const T* gradient = shard.gradient.as<const T>();
  const auto momentum = static_cast<T>(of.momentum), clip = static_cast<T>(of.clip);
  const std::int64_t count = shard.master.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * clip;
    m[i] = momentum * m[i] + g;
    to[i] = of.nesterov ? g + momentum * m[i] : m[i];
  }
}

template <class T>
void scale_rows(const TensorView& x, const double* squares) {
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    T* values = x.at(row).as<T>();
    const auto factor = static_cast<T>(1 / (std::sqrt(squares[row]) + kNormEps));
    for (std::int64_t i = 0; i < x.size(1); ++i) values[i] *= factor;
  }
}

template <class T>
void lower_terms_loop(const TensorView& polynomial, const TensorView& gram, T a, T b) {
  T* to = polynomial.as<T>();
  const T* from = gram.as<const T>();
  const std::int64_t side = polynomial.size(-1), elements = polynomial.elements();
  for (std::int64_t i = 0; i < elements; ++i) to[i] += b * from[i];
  for (std::int64_t matrix = 0; matrix < elements; matrix += side * side)
    for (std::int64_t i = 0; i < side; ++i) to[matrix + i * (side + 1)] += a;
}

template <class T>
void weights_loop(const ParameterShard& shard, const UpdateRates& of, const TensorView& direction) {
  T* p = shard.master.as<T>();
  const T* from = direction.as<const T>();
  const auto lr = static_cast<T>(of.lr), scale = static_cast<T>(of.scale), decay = static_cast<T>(of.decay);
  const std::int64_t count = shard.master.elements();
  for (std::int64_t i = 0; i < count; ++i) p[i] -= lr * (scale * from[i] + decay * p[i]);
  if (shard.working.empty()) return; // layers read the master weights
  with_type_among<float, double, Bf16, F16>(shard.working.dtype(), [&]<class W>(W) {
    W* working = shard.working.as<W>();
    for (std::int64_t i = 0; i < count; ++i) working[i] = static_cast<W>(p[i]);
  });
}

} // namespace

void fill(const TensorView& view, double value) {
  if (!view.data()) return;
  with_type_among<float, double>(
      view.dtype(), [&]<class T>(T) { std::fill_n(view.as<T>(), view.elements(), static_cast<T>(value)); });
}

void update_momentum(const ParameterShard& shard, const Momentum& of, const TensorView& direction) {
  if (!direction.data()) return;
  with_type_among<float, double>(shard.master.dtype(), [&]<class T>(T) { momentum_loop<T>(shard, of, direction); });
}

void divide_by_norms(const TensorView& x, const TensorView& squares) {
  if (!x.data()) return;
  with_type_among<float, double>(x.dtype(), [&]<class T>(T) { scale_rows<T>(x, squares.as<const double>()); });
}

void add_lower_terms(const TensorView& polynomial, const TensorView& gram, double a, double b) {
  if (!polynomial.data()) return;
  with_type_among<float, double>(polynomial.dtype(), [&]<class T>(T) {
    lower_terms_loop<T>(polynomial, gram, static_cast<T>(a), static_cast<T>(b));
  });
}

void update_weights(const ParameterShard& shard, const UpdateRates& of, const TensorView& direction) {
  if (!direction.data()) return;
  with_type_among<float, double>(shard.master.dtype(), [&]<class T>(T) { weights_loop<T>(shard, of, direction); });
}

} // namespace triax::optim_muon
