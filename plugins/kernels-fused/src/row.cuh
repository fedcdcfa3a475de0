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
template <unsigned kThreadsOfRow, int kVecsOfThread, bool kAlignedRows = true, bool kFullRows = false>
struct RowMapping {
  static constexpr unsigned kThreads = kThreadsOfRow;
  static constexpr int kVecs = kVecsOfThread;
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

/// Calls body(row) for each row of the calling thread. Declare a row's arrays inside `body`: in front of the loop, they
/// would be live from one row to the next, and nvcc would keep registers for them.
template <class Mapping, class Body>
__device__ __forceinline__ void for_each_row(std::int64_t rows, Body body) {
  constexpr std::int64_t kRowsOfBlock = kBlockSize / Mapping::kThreads;
  const std::int64_t first = blockIdx.x * kRowsOfBlock + threadIdx.x / Mapping::kThreads;
  for (std::int64_t row = first; row < rows; row += gridDim.x * kRowsOfBlock) body(row);
}
template <class Mapping>
__device__ __forceinline__ unsigned thread_of_row() {
  return threadIdx.x % Mapping::kThreads;
}

/// kernel(args...) over `rows` rows, each of which gets Mapping::kThreads threads.
template <class Mapping, class... Params, class... Args>
void launch_rows(cuda::LaunchSite site, const OpContext& context, std::int64_t rows, void (*kernel)(Params...),
                 const Args&... args) {
  if (rows == 0) return;
  constexpr std::int64_t kRowsOfBlock = kBlockSize / Mapping::kThreads;
  cuda::Launch(site, cuda::grid_of_blocks((rows + kRowsOfBlock - 1) / kRowsOfBlock), context)(kernel, args...);
}

/// Number of valid elements of the vector at element `column`: all of them, in aligned rows.
template <class T, class Mapping>
__device__ __forceinline__ int valid_in_row(std::int64_t n, std::int64_t column) {
  return Mapping::kAligned ? kVec<T> : valid_elements<T>(n, column);
}

/// Elements from one vector of a thread to its next.
template <class T, class Mapping>
inline constexpr int kVecStride = static_cast<int>(Mapping::kThreads) * kVec<T>;

/// Makes nvcc convert 16-bit elements where they are used. Otherwise it converts them early, and keeps floats in twice
/// the registers.
template <class T>
__device__ __forceinline__ void keep_in_type(Vec16<T>& vec) {
  if constexpr (cuda::kHalf<T>)
    asm volatile("" : "+r"(vec.words[0]), "+r"(vec.words[1]), "+r"(vec.words[2]), "+r"(vec.words[3]));
}

/// Vectors at the same position of kRows rows that are read together.
template <class T, int kRows>
struct Vecs {
  Vec16<T> of[kRows];
};
template <class T, int kRows>
__device__ __forceinline__ Vecs<T, kRows> kept_in_type(Vecs<T, kRows> vecs) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) keep_in_type(vecs.of[i]);
  return vecs;
}

/// A count of elements, in 32 bits if the row is kept in registers.
template <class Mapping>
__device__ __forceinline__ auto in_32_bits(std::int64_t count) {
  if constexpr (Mapping::kVecs > 0) {
    return static_cast<int>(count);
  } else {
    return count;
  }
}

/// use(number, column, vecs) for each vector of the thread, in order: its number among those kept (0 where none is
/// kept), its first element, and load(column), of type Vecs. At most kInFlight vectors are loaded before the first is
/// used.
template <class T, class Mapping, int kInFlight = 8, class Load, class Use>
__device__ __forceinline__ void for_each_vec(std::int64_t n, Load load, Use use) {
  // Vectors that are loaded together where no row is kept: 4, or 1 where elements are loaded one by one.
  constexpr int kOfThread = Mapping::kVecs > 0 ? Mapping::kVecs : Mapping::kAligned ? 4 : 1;
  constexpr int kBatch = kOfThread < kInFlight ? kOfThread : kInFlight;
  static_assert(Mapping::kVecs % kBatch == 0);
  const auto load_then_use = [&](int number, std::int64_t begin) {
    const auto left = in_32_bits<Mapping>(n - begin);
    decltype(load(begin)) loaded[kBatch]{};
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (Mapping::kFull || i * kVecStride<T, Mapping> < left) loaded[i] = load(begin + i * kVecStride<T, Mapping>);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (Mapping::kFull || i * kVecStride<T, Mapping> < left)
        use(Mapping::kVecs > 0 ? number + i : 0, begin + i * kVecStride<T, Mapping>, kept_in_type(loaded[i]));
    }
  };
  const std::int64_t first = static_cast<std::int64_t>(thread_of_row<Mapping>()) * kVec<T>;
  if constexpr (Mapping::kVecs > 0) {
#pragma unroll
    for (int number = 0; number < Mapping::kVecs; number += kBatch)
      load_then_use(number, first + number * kVecStride<T, Mapping>);
  } else {
    for (std::int64_t begin = first; begin < n; begin += kBatch * kVecStride<T, Mapping>) load_then_use(0, begin);
  }
}

/// A thread's vectors of kRows rows, in registers if the mapping keeps them.
template <class T, class Mapping, int kRows = 1>
class RowRegisters {
 public:
  __device__ __forceinline__ void put(int number, const Vecs<T, kRows>& vecs) {
    if constexpr (Mapping::kVecs > 0) vecs_[number] = vecs;
  }
  /// use(column, vecs) for each vector of the thread, in order: the kept vectors, or load(column) again.
  template <class Load, class Use>
  __device__ __forceinline__ void for_each(std::int64_t n, Load load, Use use) const {
    if constexpr (Mapping::kVecs > 0) {
      const std::int64_t first = static_cast<std::int64_t>(thread_of_row<Mapping>()) * kVec<T>;
      const auto left = in_32_bits<Mapping>(n - first);
#pragma unroll
      for (int number = 0; number < Mapping::kVecs; ++number) {
        if (Mapping::kFull || number * kVecStride<T, Mapping> < left)
          use(first + number * kVecStride<T, Mapping>, kept_in_type(vecs_[number]));
      }
    } else {
      for_each_vec<T, Mapping>(n, load,
                               [&](int, std::int64_t column, const Vecs<T, kRows>& vecs) { use(column, vecs); });
    }
  }

 private:
  Vecs<T, kRows> vecs_[Mapping::kVecs > 0 ? Mapping::kVecs : 1];
};

} // namespace triax::kernels_fused
