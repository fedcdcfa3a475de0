// SPDX-License-Identifier: Apache-2.0
// How the elements of a row are distributed over threads, and the launch of kernels over rows.
//
// The distribution depends on the row's length only: vector v (vec16.cuh) belongs to thread v % threads. If the row is
// short enough, its threads keep it in registers between passes, in the type of memory (norms: in fp32 if
// registers suffice). A thread loads all of its vectors, or several if registers are short, before it computes with any
// of them, so a row costs the memory's latency once or twice, not once per vector.
//
// Host threads: launch_rows(): the rank's main thread. Blocking: may run the progress loop (launch_stream()). Errors:
// Error with the operation, if CUDA rejects the launch.
#pragma once

#include "reduce.cuh"
#include "triax/cuda/launching.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

/// kVecs: vectors of its row that a thread keeps in registers; 0: none, every pass reads memory. kAligned: every row
/// consists of whole vectors at multiples of 16 bytes. Other rows are never kept; their sums are the same. kFull: every
/// thread has kVecs vectors of the row, so it compares no columns.
template <unsigned kThreads, int kVecs, bool kAlignedRows = true, bool kFullRows = false>
struct RowMapping {
  static constexpr unsigned kThreadsPerRow = kThreads;
  static constexpr int kVecsPerThread = kVecs;
  static constexpr bool kAligned = kAlignedRows, kFull = kFullRows;
  static constexpr std::int64_t kMaxBytes = std::int64_t{16} * kThreads * kVecs; // of a row that is kept
};
template <int kVecs>
using FullRows = RowMapping<kWarpSize, kVecs, true, true>;
inline constexpr std::int64_t kMaxWarpRow = RowMapping<kWarpSize, 8>::kMaxBytes; // longer rows get a block

/// Calls body(mapping) with the mapping for rows of n elements of T. `aligned` does not change the number of threads.
template <class T, class Body>
void dispatch_row_mapping(std::int64_t n, bool aligned, Body body) {
  const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
  if (!aligned) {
    return bytes <= kMaxWarpRow ? body(RowMapping<kWarpSize, 0, false>{}) : body(RowMapping<kBlockSize, 0, false>{});
  }
  using Warp4 = RowMapping<kWarpSize, 4>;
  using Warp8 = RowMapping<kWarpSize, 8>;
  using Block2 = RowMapping<kBlockSize, 2>;
  using Block4 = RowMapping<kBlockSize, 4>;
  using Block8 = RowMapping<kBlockSize, 8>;
  if (bytes <= Warp4::kMaxBytes) return body(Warp4{});
  if (bytes <= Warp8::kMaxBytes) return body(Warp8{});
  if (bytes <= Block2::kMaxBytes) return body(Block2{});
  if (bytes <= Block4::kMaxBytes) return body(Block4{});
  if (bytes <= Block8::kMaxBytes) return body(Block8{});
  body(RowMapping<kBlockSize, 0>{});
}

/// Calls body(row) for each row of the calling thread. Declare a row's arrays inside `body`. In a plain loop they would
/// be live from one row to the next, and take more registers: nvcc ends their lifetime only where a function ends.
template <class Mapping, class Body>
__device__ __forceinline__ void for_each_row(std::int64_t rows, Body body) {
  constexpr std::int64_t kRowsPerBlock = kBlockSize / Mapping::kThreadsPerRow;
  const std::int64_t first = blockIdx.x * kRowsPerBlock + threadIdx.x / Mapping::kThreadsPerRow;
  for (std::int64_t row = first; row < rows; row += gridDim.x * kRowsPerBlock) body(row);
}
template <class Mapping>
__device__ __forceinline__ unsigned thread_in_row() {
  return threadIdx.x % Mapping::kThreadsPerRow;
}

/// kernel(args...) over `rows` rows, each of which gets Mapping::kThreadsPerRow threads.
template <class Mapping, class... Params, class... Args>
void launch_rows(cuda::LaunchSite site, const OpContext& context, std::int64_t rows, void (*kernel)(Params...),
                 const Args&... args) {
  if (rows == 0) return;
  constexpr std::int64_t kRowsPerBlock = kBlockSize / Mapping::kThreadsPerRow;
  cuda::Launch(site, cuda::grid_of_blocks(ceil_div(rows, kRowsPerBlock)), context)(kernel, args...);
}

/// Number of valid elements of the vector at element `column`: all of them, in aligned rows.
template <class T, class Mapping>
__device__ __forceinline__ int valid_in_row(std::int64_t n, std::int64_t column) {
  return Mapping::kAligned ? kVec<T> : valid_elements<T>(n, column);
}

/// Elements from one vector of a thread to its next.
template <class T, class Mapping>
inline constexpr int kVecStride = static_cast<int>(Mapping::kThreadsPerRow) * kVec<T>;

/// Vectors at the same position of kRows rows that are read together.
template <class T, int kRows>
struct Vecs {
  Vec16<T> of[kRows];
};

/// Makes nvcc convert 16-bit elements where they are used. Otherwise it converts them early, and keeps floats in twice
/// the registers.
/// @{
template <class T>
__device__ __forceinline__ void keep_packed(Vec16<T>& vec) {
  if constexpr (cuda::kHalf<T>)
    asm volatile("" : "+r"(vec.words[0]), "+r"(vec.words[1]), "+r"(vec.words[2]), "+r"(vec.words[3]));
}

template <class T, int kRows>
__device__ __forceinline__ void keep_packed(Vecs<T, kRows>& vecs) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) keep_packed(vecs.of[i]);
}
/// @}

/// The vectors that the calling thread keeps of a row of n elements: column(v) is the first element of vector v.
template <class T, class Mapping>
struct RowVecs {
  std::int64_t first;
  int left; // elements of the row from `first` on
  explicit __device__ __forceinline__ RowVecs(std::int64_t n)
      : first(static_cast<std::int64_t>(thread_in_row<Mapping>()) * kVec<T>), left(static_cast<int>(n - first)) {}
  __device__ __forceinline__ bool has(int v) const { return Mapping::kFull || v * kVecStride<T, Mapping> < left; }
  __device__ __forceinline__ std::int64_t column(int v) const { return first + v * kVecStride<T, Mapping>; }
};
/// A kept vector in f32.
template <class T>
__device__ __forceinline__ Floats<T> kept_floats(Vec16<T> vec) {
  keep_packed(vec);
  return to_floats(vec);
}
template <class T>
__device__ __forceinline__ const Floats<T>& kept_floats(const Floats<T>& floats) {
  return floats;
}

/// use(column, vecs) for each vector of the thread, in order: its first element, and load(column), of type Vecs. At
/// most kInFlight vectors are loaded before the first is used; one where elements are loaded one by one.
template <class T, class Mapping, int kInFlight = 4, class Load, class Use>
__device__ __forceinline__ void for_each_vec(std::int64_t n, Load load, Use use) {
  constexpr int kBatch = Mapping::kAligned ? kInFlight : 1;
  constexpr int kStride = kVecStride<T, Mapping>;
  for (std::int64_t begin = static_cast<std::int64_t>(thread_in_row<Mapping>()) * kVec<T>; begin < n;
       begin += kBatch * kStride) {
    const std::int64_t left = n - begin;
    decltype(load(begin)) loaded[kBatch]{};
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (i * kStride < left) loaded[i] = load(begin + i * kStride);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (i * kStride < left) {
        auto vecs = loaded[i];
        keep_packed(vecs);
        use(begin + i * kStride, vecs);
      }
    }
  }
}

} // namespace triax::kernels_fused
