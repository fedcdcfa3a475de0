// SPDX-License-Identifier: Apache-2.0
// sum = residual + dropout(x + bias), vector by vector: as a separate operation, and as the input of a norm.
#pragma once

#include "row.cuh"
#include "triax/cuda/drop.hpp"

namespace triax::kernels_fused {

/// Bit i: element `column` + i of a row is kept, for `count` elements. Computes each Philox block once.
__device__ __forceinline__ unsigned kept_bits(const cuda::DropArguments& drop, std::int64_t row, std::int64_t column,
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
      if (element >= first && element < end && words[word] >= drop.threshold) bits |= 1u << (element - first);
    }
  }
  return bits;
}

/// Whether every row starts with a new Philox block, so that each of them belongs to one vector, and row numbers fit in
/// 32 bits.
inline bool rows_start_philox_blocks(const cuda::DropArguments& drop, std::int64_t rows) {
  return !drop.scores && drop.width % 4 == 0 && drop.column0 % 4 == 0 && rows <= 0xFFFFFFFF && drop.batch <= 0xFFFFFFFF;
}

/// The values that the dropped elements of a row share, where rows_start_philox_blocks().
struct DropRow {
  std::uint64_t first = 0; // number of the row's first element in its sample
  std::uint32_t sample = 0;
};
__device__ __forceinline__ DropRow drop_row(const cuda::DropArguments& drop, std::int64_t row) {
  const std::uint32_t number = static_cast<std::uint32_t>(row), batch = static_cast<std::uint32_t>(drop.batch);
  const std::uint32_t row_of_sample = number / batch;
  return {static_cast<std::uint64_t>((drop.row0 + row_of_sample) * drop.width + drop.column0),
          static_cast<std::uint32_t>(drop.samples[number - row_of_sample * batch])};
}
/// Applies dropout to the whole vector x at element `column` of a row.
template <class T>
__device__ __forceinline__ void drop_vec(Floats<T>& x, const cuda::DropArguments& drop, DropRow row,
                                         std::int64_t column) {
#pragma unroll
  for (int philox_block = 0; philox_block < kVec<T>; philox_block += 4) {
    const std::uint64_t element = row.first + static_cast<std::uint64_t>(column) + static_cast<unsigned>(philox_block);
    const PhiloxBlock words = philox_at(drop.key, element, drop.site, row.sample);
#pragma unroll
    for (int word = 0; word < 4; ++word)
      x[philox_block + word] = words[word] < drop.threshold ? 0.0f : x[philox_block + word] * drop.scale;
  }
}

/// The operands of sum = residual + dropout(x + bias), rows [rows, n] of each. bias, residual: may be null.
template <class T>
struct BiasDropoutAddRows {
  T* sum = nullptr;
  const T *x = nullptr, *bias = nullptr, *residual = nullptr;
  cuda::DropArguments drop{};
  std::int64_t n = 0;
  bool drops = false;
};

template <bool kAligned, class T>
__device__ __forceinline__ DropRow philox_row_of(const BiasDropoutAddRows<T>& rows, std::int64_t row) {
  return kAligned && rows.drops ? drop_row(rows.drop, row) : DropRow{};
}

/// x and, if kResidual, residual: a vector at element `column` of a row.
template <bool kResidual, bool kAligned, class T>
__device__ __forceinline__ Vecs<T, kResidual ? 2 : 1> load_operands(const BiasDropoutAddRows<T>& rows, std::int64_t row,
                                                                    std::int64_t column) {
  const std::int64_t offset = row * rows.n + column;
  const int valid = kAligned ? kVec<T> : valid_elements<T>(rows.n, column);
  const Vec16<T> x = load_vec(rows.x + offset, valid, kAligned);
  if constexpr (kResidual) {
    return {x, rows.residual ? load_vec(rows.residual + offset, valid, kAligned) : Vec16<T>{}};
  } else {
    return {x};
  }
}

/// Computes a vector of the sum at element `column` of a row, stores it, and returns it, rounded like the stored value.
template <bool kAligned, class T>
__device__ __forceinline__ Vec16<T> bias_dropout_add_store(const BiasDropoutAddRows<T>& rows, std::int64_t row,
                                                           DropRow philox_row, std::int64_t column, Vec16<T> x,
                                                           Vec16<T> residual) {
  const int valid = kAligned ? kVec<T> : valid_elements<T>(rows.n, column);
  Floats<T> sum = to_floats(x);
  if (rows.bias) {
    const Floats<T> bias_values = load_readonly(rows.bias + column, valid, kAligned);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) sum[i] += bias_values[i];
  }
  if (rows.drops && kAligned) {
    drop_vec(sum, rows.drop, philox_row, column);
  } else if (rows.drops) {
    const unsigned kept = kept_bits(rows.drop, row, column, valid);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) sum[i] = (kept >> i & 1u) != 0 ? sum[i] * rows.drop.scale : 0.0f;
  }
  if (rows.residual) {
    const Floats<T> residual_values = to_floats(residual);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) sum[i] += residual_values[i];
  }
  store(rows.sum + row * rows.n + column, sum, valid, kAligned);
  return from_floats(sum);
}

template <class T>
BiasDropoutAddRows<T> bias_dropout_add_rows(const BiasDropoutAdd& args) {
  BiasDropoutAddRows<T> out{
      args.y.as<T>(),  args.x.as<const T>(), args.bias.as<const T>(), args.residual.as<const T>(), {},
      args.x.size(-1), args.drop.p > 0};
  if (out.drops) out.drop = cuda::drop_arguments({args.y, args.x, args.drop});
  return out;
}

/// Whether rows can be processed in whole vectors: in memory, and in the numbers of their random words.
template <class T>
bool aligned_rows(const BiasDropoutAddRows<T>& operands, std::int64_t rows,
                  std::initializer_list<const TensorView*> views) {
  return aligned_rows<T>(operands.n, views) && (!operands.drops || rows_start_philox_blocks(operands.drop, rows));
}

} // namespace triax::kernels_fused
