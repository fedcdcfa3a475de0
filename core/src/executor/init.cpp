// SPDX-License-Identifier: Apache-2.0
// Draws initial weights.
#include "executor/init.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "base/start_thread.hpp"
#include "triax/error.hpp"
#include "triax/precision.hpp"
#include "triax/random.hpp"

namespace triax::executor {

namespace {

constexpr std::int64_t kWorthAThread = 1 << 18; // elements; fewer are not worth a thread

double constant(const Init& init) {
  return init.kind == Init::Kind::ones ? 1 : 0;
}

/// In (0, 1], so that the logarithm is finite.
double positive_uniform(std::uint32_t word) {
  return (static_cast<double>(word) + 1) / 4294967296.0;
}

/// Elements `pair` and `pair` + 1 of a block; `pair` is 0 or 2.
std::array<double, 2> normals(const PhiloxBlock& block, std::size_t pair, double std) {
  const double radius = std::sqrt(-2 * std::log(positive_uniform(block[pair])));
  const double angle = 2 * std::numbers::pi * (static_cast<double>(block[pair + 1]) / 4294967296.0);
  return {std * radius * std::cos(angle), std * radius * std::sin(angle)};
}

/// Consecutive elements of the global tensor: computes each block once.
template <class T>
void draw_run(T* out, const ParamSpec& spec, PhiloxKey key, std::uint64_t first, std::int64_t count) {
  if (spec.init.kind != Init::Kind::normal) {
    std::fill_n(out, count, static_cast<T>(constant(spec.init)));
    return;
  }
  std::uint64_t element = first;
  const std::uint64_t end = first + static_cast<std::uint64_t>(count);
  while (element < end) {
    const PhiloxBlock block = philox_at(key, element, spec.site, 0);
    do {
      const std::array<double, 2> both = normals(block, element % 4 / 2 * 2, spec.init.std);
      do {
        *out++ = static_cast<T>(both[element % 2]);
      } while (++element < end && element % 2 != 0);
    } while (element < end && element % 4 != 0);
  }
}

/// Row `row` of the local tensor seen as [rows, last dimension].
template <class T>
void draw_row(T* out, const ParamSpec& spec, PhiloxKey key, std::int64_t row) {
  const int last = spec.local.rank() - 1;
  std::int64_t rest = row, stride = spec.global[last], first = 0, count = spec.local[last];
  if (const Cut* cut = spec.cut_along(last)) {
    first = cut->begin;
    count = std::clamp<std::int64_t>(cut->end - cut->begin, 0, count);
  }
  for (int dim = last - 1; dim >= 0; --dim) {
    std::int64_t index = rest % spec.local[dim];
    rest /= spec.local[dim];
    if (const Cut* cut = spec.cut_along(dim)) {
      index += cut->begin;
      if (index >= cut->end) count = 0;
    }
    first += index * stride;
    stride *= spec.global[dim];
  }
  draw_run(out, spec, key, static_cast<std::uint64_t>(first), count);
  std::fill(out + count, out + spec.local[last], T{0}); // padding
}

template <class T>
void draw(T* out, const ParamSpec& spec, std::uint64_t seed, int threads) {
  const std::int64_t count = spec.local.elements();
  if (count == 0) return;
  const std::int64_t width = spec.local[spec.local.rank() - 1], rows = count / width;
  const PhiloxKey key = philox_key(seed, RandomPurpose::weights);
  const auto some = [=, &spec](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) draw_row(out + row * width, spec, key, row);
  };
  const std::int64_t parts = std::clamp<std::int64_t>(count / kWorthAThread, 1, std::min<std::int64_t>(threads, rows));
  std::vector<std::jthread> others;
  for (std::int64_t part = 1; part < parts; ++part)
    others.push_back(start_thread("a thread that draws initial weights",
                                  [&] { return std::jthread(some, rows * part / parts, rows * (part + 1) / parts); }));
  some(0, rows / parts);
}

} // namespace

double initial_value(const Init& init, std::uint64_t seed, std::uint32_t site, std::uint64_t element) {
  if (init.kind != Init::Kind::normal) return constant(init);
  const PhiloxBlock block = philox_at(philox_key(seed, RandomPurpose::weights), element, site, 0);
  return normals(block, element % 4 / 2 * 2, init.std)[element % 2];
}

void draw_weights(const TensorView& host, const ParamSpec& spec, std::uint64_t seed, int threads) {
  TRIAX_REQUIRE(spec.local.rank() > 0, "{} has no dimension", spec.name);
  TRIAX_REQUIRE(host.shape() == spec.local, "{} is {}, not {}", spec.name, spec.local, host.shape());
  if (host.dtype() == DType::f64) return draw(host.as<double>(), spec, seed, threads);
  TRIAX_REQUIRE(host.dtype() == DType::f32, "master weights are fp32 or fp64, not {}", precision_name(host.dtype()));
  draw(host.as<float>(), spec, seed, threads);
}

} // namespace triax::executor
