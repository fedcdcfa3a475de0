// SPDX-License-Identifier: Apache-2.0
#include "cuda_movement.hpp"
#include "triax/cuda/index.hpp"
#include "triax/cuda/launch_kernel.cuh"
#include "triax/cuda/rounding.hpp"
#include "triax/element_type.hpp"

namespace triax::cuda {

namespace {

/// Four elements, loaded at once.
template <class T>
struct alignas(4 * sizeof(T)) Vec4 {
  T values[4];
};
constexpr std::int64_t kVec = 4;

/// One thread per element, in a grid-stride loop.
///
/// to[i] = body(to[i], from[i]) for views of `count` elements each.
template <class To, class From, class Body>
__global__ void transform_strided(To* to, Strided to_at, const From* from, Strided from_at, std::int64_t count,
                                  Body body) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    To& out = to[offset_of(to_at, i)];
    out = body(out, from[offset_of(from_at, i)]);
  }
}

/// One thread per four elements, in a grid-stride loop.
///
/// The same for contiguous, aligned views: in vectors of four, then the remaining elements. Copied and Converted ignore
/// their first argument, so nvcc removes the load of `to`.
template <class To, class From, class Body>
__global__ void transform_contiguous(To* to, const From* from, std::int64_t count, Body body) {
  const GridStride stride = grid_stride();
  const std::int64_t vecs = count / kVec;
  for (std::int64_t i = stride.first; i < vecs; i += stride.step) {
    Vec4<To> out = reinterpret_cast<const Vec4<To>*>(to)[i];
    const Vec4<From> in = reinterpret_cast<const Vec4<From>*>(from)[i];
    for (int j = 0; j < kVec; ++j) out.values[j] = body(out.values[j], in.values[j]);
    reinterpret_cast<Vec4<To>*>(to)[i] = out;
  }
  const std::int64_t rest = vecs * kVec + stride.first;
  if (rest < count) to[rest] = body(to[rest], from[rest]); // fewer elements than threads of the grid
}

template <class T>
bool is_aligned(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(Vec4<T>) == 0;
}

template <class To, class From, class Body>
cudaError_t transform(const TensorView& to, const TensorView& from, cudaStream_t stream, Body body) {
  const std::int64_t count = to.elements();
  To* out = to.as<To>();
  const From* in = from.as<const From>();
  if (to.contiguous() && from.contiguous() && is_aligned(out) && is_aligned(in)) {
    const Grid grid = grid_of_elements(ceil_div(count, kVec));
    return launch_kernel(transform_contiguous<To, From, Body>, grid, stream, out, in, count, body);
  }
  return launch_kernel(transform_strided<To, From, Body>, grid_of_elements(count), stream, out, strided(to), in,
                       strided(from), count, body);
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void fill_elements(T* to, Strided to_at, T element, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) to[offset_of(to_at, i)] = element;
}

template <class T>
struct Copied {
  __device__ T operator()(T, T from) const { return from; }
};
template <class To, class From>
struct Converted {
  __device__ To operator()(To, From from) const { return converted<To>(from); }
};
template <class To, class From>
struct Added {
  __device__ To operator()(To to, From from) const { return sum_of(to, converted<To>(from)); }
};

/// Calls body(T{}), where T is an unsigned type of the same size.
template <class Body>
void with_width(DType dtype, Body body) {
  switch (bytes_of(dtype)) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    default:
      return body(std::uint64_t{});
  }
}

} // namespace

void launch_copy(const TensorView& to, const TensorView& from, cudaStream_t stream) {
  with_width(to.dtype(), [&]<class T>(T) { check_launch("copy", transform<T, T>(to, from, stream, Copied<T>{})); });
}

void launch_fill(const TensorView& to, std::uint64_t element, cudaStream_t stream) {
  with_width(to.dtype(), [&]<class T>(T) {
    check_launch("fill", launch_kernel(fill_elements<T>, grid_of_elements(to.elements()), stream, to.as<T>(),
                                       strided(to), static_cast<T>(element), to.elements()));
  });
}

void launch_convert(const TensorView& to, const TensorView& from, cudaStream_t stream) {
  with_type(to.dtype(), [&]<class To>(To) {
    with_type(from.dtype(), [&]<class From>(From) {
      check_launch("convert", transform<To, From>(to, from, stream, Converted<To, From>{}));
    });
  });
}

void launch_add(const TensorView& to, const TensorView& from, cudaStream_t stream) {
  with_type(from.dtype(), [&]<class From>(From) {
    if (to.dtype() == from.dtype()) {
      check_launch("add", transform<From, From>(to, from, stream, Added<From, From>{}));
    } else { // check_add() allows different types only for f32
      check_launch("add", transform<float, From>(to, from, stream, Added<float, From>{}));
    }
  });
}

} // namespace triax::cuda
