// SPDX-License-Identifier: Apache-2.0
#include "update.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <triax/element_type.hpp>

namespace triax::optim_lamb {

namespace {

/// Coefficients in the type of the master weights, in which the elements are computed.
template <class T>
struct Direction {
  explicit Direction(const Coefficients& of)
      : correction1(static_cast<T>(of.correction1)),
        correction2(static_cast<T>(of.correction2)),
        eps(static_cast<T>(of.eps)),
        decay(static_cast<T>(of.decay)) {}
  T operator()(T p, T m, T v) const { return m * correction1 / (std::sqrt(v * correction2) + eps) + decay * p; }
  T correction1, correction2, eps, decay;
};

template <class T>
void means(const ParameterShard& shard, const Coefficients& of) {
  T *m = shard.state[0].as<T>(), *v = shard.state[1].as<T>();
  const T* gradient = shard.gradient.as<const T>();
  const auto beta1 = static_cast<T>(of.beta1), beta2 = static_cast<T>(of.beta2), clip = static_cast<T>(of.clip);
  const auto rest1 = static_cast<T>(1 - of.beta1), rest2 = static_cast<T>(1 - of.beta2); // rounded once
  const std::int64_t count = shard.master.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * clip;
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
  }
}

/// In double. Element i is added to sum i % kLanes: independent sums, in an order that depends on the elements only.
template <class T>
SquareSums squares(const ParameterShard& shard, const Coefficients& of) {
  constexpr std::int64_t kLanes = 8;
  const Direction<T> direction(of);
  const TensorView owned = shard.owned(shard.master);
  const T *p = owned.as<const T>(), *m = shard.owned(shard.state[0]).as<const T>(),
          *v = shard.owned(shard.state[1]).as<const T>();
  std::array<double, kLanes> weights{}, directions{};
  const auto add = [&](std::int64_t i, std::size_t lane) {
    const auto weight = static_cast<double>(p[i]), step = static_cast<double>(direction(p[i], m[i], v[i]));
    weights[lane] += weight * weight;
    directions[lane] += step * step;
  };
  const std::int64_t count = owned.elements(), whole = count - count % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, static_cast<std::size_t>(lane));
  for (std::int64_t i = whole; i < count; ++i) add(i, static_cast<std::size_t>(i - whole));
  SquareSums out;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    out.weights += weights[lane];
    out.direction += directions[lane];
  }
  return out;
}

template <class T>
void weights(const ParameterShard& shard, const Coefficients& of, T rate) {
  const Direction<T> direction(of);
  T* p = shard.master.as<T>();
  const T *m = shard.state[0].as<const T>(), *v = shard.state[1].as<const T>();
  const std::int64_t count = shard.master.elements();
  for (std::int64_t i = 0; i < count; ++i) p[i] -= rate * direction(p[i], m[i], v[i]);
  if (shard.working.empty()) return; // layers read the master weights
  with_type_among<float, double, Bf16, F16>(shard.working.dtype(), [&]<class W>(W) {
    W* working = shard.working.as<W>();
    for (std::int64_t i = 0; i < count; ++i) working[i] = static_cast<W>(p[i]);
  });
}

} // namespace

void update_means(const ParameterShard& shard, const Coefficients& of) {
  with_type_among<float, double>(shard.master.dtype(), [&]<class T>(T) { means<T>(shard, of); });
}

SquareSums sum_squares(const ParameterShard& shard, const Coefficients& of) {
  SquareSums out;
  with_type_among<float, double>(shard.master.dtype(), [&]<class T>(T) { out = squares<T>(shard, of); });
  return out;
}

void update_weights(const ParameterShard& shard, const Coefficients& of, double rate) {
  with_type_among<float, double>(shard.master.dtype(),
                                 [&]<class T>(T) { weights<T>(shard, of, static_cast<T>(rate)); });
}

} // namespace triax::optim_lamb
