// SPDX-License-Identifier: Apache-2.0
// y = residual + dropout(x + bias), vector by vector: as a separate operation, and as the input of a norm.
#pragma once

#include "row.cuh"
#include "triax/cuda/drop.hpp"

namespace triax::kernels_fused {

/// Bit i: element `column` + i of a row is dropped, for `count` elements. Computes each Philox block once.
__device__ __forceinline__ unsigned dropped_bits(const cuda::DropPlan& drop, std::int64_t row, std::int64_t column,
                                                 int count) {
  const cuda::DropIndex index = cuda::drop_index(drop, row, column);
  const auto sample = static_cast<std::uint32_t>(drop.samples[index.sample]);
  const auto first = static_cast<std::uint64_t>(index.element), end = first + static_cast<std::uint64_t>(count);
  unsigned bits = 0;
  for (std::uint64_t philox_block = first / 4 * 4; philox_block < end; philox_block += 4) {
    const PhiloxBlock words = philox_at(drop.key, philox_block, drop.site, sample);
#pragma unroll
    for (unsigned word = 0; word < 4; ++word) {
      const std::uint64_t element = philox_block + word;
      if (element >= first && element < end && words[word] < drop.threshold) bits |= 1u << (element - first);
    }
  }
  return bits;
}

/// Whether every row starts with a new Philox block, so that each of them belongs to one vector, and row numbers fit in
/// 32 bits.
inline bool rows_start_philox_blocks(const cuda::DropPlan& drop, std::int64_t rows) {
  return !drop.scores && drop.width % 4 == 0 && drop.column0 % 4 == 0 && rows <= 0xFFFFFFFF && drop.batch <= 0xFFFFFFFF;
}

/// The values that the dropped elements of a row share, where rows_start_philox_blocks().
struct DropRow {
  std::uint64_t first = 0; // number of the row's first element in its sample
  std::uint32_t sample = 0;
};
__device__ __forceinline__ DropRow drop_row(const cuda::DropPlan& drop, std::int64_t row) {
  const std::uint32_t number = static_cast<std::uint32_t>(row), batch = static_cast<std::uint32_t>(drop.batch);
  const std::uint32_t row_of_sample = number / batch;
  return {static_cast<std::uint64_t>((drop.row0 + row_of_sample) * drop.width + drop.column0),
          static_cast<std::uint32_t>(drop.samples[number - row_of_sample * batch])};
}
/// Applies dropout to the whole vector x at element `column` of a row.
template <class T>
__device__ __forceinline__ void drop_vec(Floats<T>& x, const cuda::DropPlan& drop, DropRow row, std::int64_t column) {
#pragma unroll
  for (int philox_block = 0; philox_block < kVec<T>; philox_block += 4) {
    const std::uint64_t element = row.first + static_cast<std::uint64_t>(column) + static_cast<unsigned>(philox_block);
    const PhiloxBlock words = philox_at(drop.key, element, drop.site, row.sample);
#pragma unroll
    for (int word = 0; word < 4; ++word)
      x[philox_block + word] = words[word] < drop.threshold ? 0.0f : x[philox_block + word] * drop.scale;
  }
}

/// Rows [rows, n] of residual + dropout(x + bias). As the input of a kernel: load() reads the operands of a vector, for
/// at most kInFlight vectors at a time; compute_and_store_y() computes residual + dropout(x + bias), stores it to y and
/// returns it, rounded; reload() reads y again.
template <class T>
struct ResidualRows {
  static constexpr int kLoaded = 2, kInFlight = 4, kMinBlocks = 3; // 80 registers a thread
  T* y;
  const T *x, *bias, *residual; // bias, residual: may be null
  cuda::DropPlan drop;
  std::int64_t n;
  bool drops;

  using Row = DropRow;
  template <class Mapping>
  __device__ __forceinline__ Row begin_row(std::int64_t row) const {
    if (!Mapping::kAligned || !drops) return {};
    return kernels_fused::drop_row(drop, row);
  }
  template <class Mapping>
  __device__ __forceinline__ Vecs<T, kLoaded> load(std::int64_t row, std::int64_t column) const {
    const std::int64_t offset = row * n + column;
    const int valid = valid_in_row<T, Mapping>(n, column);
    return {load_vec(x + offset, valid, Mapping::kAligned),
            residual ? load_vec(residual + offset, valid, Mapping::kAligned) : Vec16<T>{}};
  }
  template <class Mapping>
  __device__ __forceinline__ Vecs<T, 1> compute_and_store_y(std::int64_t row, Row philox_row, std::int64_t column,
                                                            const Vecs<T, kLoaded>& loaded) const {
    const int valid = valid_in_row<T, Mapping>(n, column);
    Floats<T> sum = to_floats(loaded.of[0]);
    if (bias) {
      const Floats<T> bias_values = load_readonly(bias + column, valid, Mapping::kAligned);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum[i] += bias_values[i];
    }
    if (drops && Mapping::kAligned) {
      drop_vec(sum, drop, philox_row, column);
    } else if (drops) {
      const unsigned bits = dropped_bits(drop, row, column, valid);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum[i] = (bits >> i & 1u) != 0 ? 0.0f : sum[i] * drop.scale;
    }
    if (residual) {
      const Floats<T> residual_values = to_floats(loaded.of[1]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum[i] += residual_values[i];
    }
    store(y + row * n + column, sum, valid, Mapping::kAligned);
    return {from_floats(sum)}; // rounded like the stored value
  }
  template <class Mapping>
  __device__ __forceinline__ Vecs<T, 1> reload(std::int64_t row, std::int64_t column) const {
    return {load_vec(y + row * n + column, valid_in_row<T, Mapping>(n, column), Mapping::kAligned)};
  }
};

template <class T>
ResidualRows<T> residual_rows(const BiasDropoutAdd& args) {
  ResidualRows<T> out{args.y.as<T>(),  args.x.as<const T>(), args.bias.as<const T>(), args.residual.as<const T>(), {},
                      args.x.size(-1), args.drop.p > 0};
  if (out.drops) out.drop = cuda::drop_plan({args.y, args.x, args.drop});
  return out;
}

/// Whether rows can be processed in whole vectors: in memory, and in the numbers of their random words.
template <class T>
bool aligned_rows(const ResidualRows<T>& input, std::int64_t rows, std::initializer_list<const TensorView*> views) {
  return aligned_rows<T>(input.n, views) && (!input.drops || rows_start_philox_blocks(input.drop, rows));
}

} // namespace triax::kernels_fused
