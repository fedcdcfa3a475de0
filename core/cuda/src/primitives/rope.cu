// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al. 2021), a pass over queries or keys before attention (docs/adr/0031).
//
// An angle costs hundreds of instructions in double, in which many GPUs have a 64th of their speed. It depends on the
// position and the pair alone, so a thread computes it once and rotates this pair of many heads and samples.
#include <cmath>

#include "head_rows.cuh"
#include "internal.hpp"
#include "rope_parts.hpp"
#include "triax/cuda/launching.cuh"
#include "triax/rope_scaling.hpp"

namespace triax::cuda {

namespace {

/// The angle of a pair of a row of 2 * half elements: position * base^(-pair / half), scaled.
struct Angles {
  std::int64_t position0;
  double base;
  RopeScaling scaling;
  std::int64_t half;
  /// In float, the angle's error grows to position * 2^-24 radians.
  __device__ double angle(std::int64_t position, std::int64_t pair) const {
    const double exponent = -static_cast<double>(pair) / static_cast<double>(half);
    return static_cast<double>(position0 + position) * scaled_frequency(pow(base, exponent), scaling);
  }
};

/// One thread per pair of a position, and part of the position's rows, in a grid-stride loop.
///
/// A position has `rows` rows: `heads` for each sample. Pairs are elements `pair` and `pair` + half of a row. y may be
/// x.
template <class T>
__global__ void rotate_pairs(HeadRows<T> y, HeadRows<const T> x, Angles angles, std::int64_t positions,
                             std::int64_t rows, std::int64_t heads, Parts parts, bool inverse) {
  const GridStride stride = grid_stride();
  const std::int64_t half = angles.half;
  for (std::int64_t i = stride.first; i < positions * parts.count * half; i += stride.step) {
    const std::int64_t pair = i % half, part = i / half % parts.count, position = i / half / parts.count;
    double sine = 0, cosine = 1;
    sincos(angles.angle(position, pair), &sine, &cosine);
    const auto c = static_cast<float>(cosine), s = static_cast<float>(inverse ? -sine : sine);
    const std::int64_t begin = part * parts.length, end = begin + parts.length < rows ? begin + parts.length : rows;
    const T* from = x.row(position, begin / heads, begin % heads) + pair;
    T* to = y.row(position, begin / heads, begin % heads) + pair;
    std::int64_t heads_left = heads - begin % heads; // of the sample: a division for each row would cost more
    for (std::int64_t row = begin; row < end; ++row) {
      const float first = value_of(from[0]), second = value_of(from[half]);
      to[0] = rounded<T>(first * c - second * s);
      to[half] = rounded<T>(second * c + first * s);
      from += x.head;
      to += y.head;
      if (--heads_left == 0) {
        heads_left = heads;
        from += x.sample - heads * x.head;
        to += y.sample - heads * y.head;
      }
    }
  }
}

} // namespace

void Primitives::do_rope(const Rope& args, const OpContext& context) {
  const std::int64_t positions = args.x.size(0), heads = args.x.size(2), rows = args.x.size(1) * heads;
  const std::int64_t half = args.x.size(3) / 2;
  if (positions * rows * half == 0) return;
  const Parts parts = parts_of_rope(positions * half, rows);
  const Launch launch(Op::rope, grid_of_elements(positions * parts.count * half), context);
  by_type(args.x.dtype(), [&]<class T>(T) {
    launch(rotate_pairs<T>, head_rows<T>(args.y), head_rows<const T>(args.x),
           Angles{args.position0, args.base, args.scaling, half}, positions, rows, heads, parts, args.inverse);
  });
}

} // namespace triax::cuda
