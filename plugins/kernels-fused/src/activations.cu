// SPDX-License-Identifier: Apache-2.0
// GELU (tanh form), SwiGLU's silu_mul, and their gradients; and sums, which are the same walk over memory.
#include "flat.cuh"
#include "fused_kernels.hpp"
#include "triax/cuda/activations.cuh"

namespace triax::kernels_fused {

namespace {

/// One thread per vector of 16 bytes, in a grid-stride loop.
template <class T>
__global__ void __launch_bounds__(kBlockSize) gelu_forward(T* y, const T* x, FlatVecs<T> flat) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t vec = stride.first; vec < flat.vecs(); vec += stride.step) {
    Floats<T> out = flat.load(x, vec);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) out[i] = cuda::gelu(out[i]);
    flat.store(y, vec, out);
  }
}

/// One thread per vector of 16 bytes, in a grid-stride loop.
///
/// dx may be dy.
template <class T>
__global__ void __launch_bounds__(kBlockSize) gelu_backward(T* dx, const T* dy, const T* x, FlatVecs<T> flat) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t vec = stride.first; vec < flat.vecs(); vec += stride.step) {
    Floats<T> out = flat.load(dy, vec);
    const Floats<T> input = flat.load(x, vec);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) out[i] *= cuda::gelu_derivative(input[i]);
    flat.store(dx, vec, out);
  }
}

/// One thread per vector of 16 bytes, in a grid-stride loop.
template <class T>
__global__ void __launch_bounds__(kBlockSize) add_vecs(T* y, const T* a, const T* b, FlatVecs<T> flat) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t vec = stride.first; vec < flat.vecs(); vec += stride.step) {
    Floats<T> out = flat.load(a, vec);
    const Floats<T> other = flat.load(b, vec);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) out[i] += other[i];
    flat.store(y, vec, out);
  }
}

/// The vectors of rows of n elements: a thread's item is a vector.
template <class T>
struct GatedRows {
  std::int64_t n, vecs, items;
  bool aligned; // every row consists of whole, aligned vectors
};
template <class T>
GatedRows<T> gated_rows(const TensorView& y, std::initializer_list<const TensorView*> views) {
  const std::int64_t n = y.size(-1), vecs = ceil_div(n, kVec<T>);
  return {n, vecs, cuda::rows_of(y) * vecs, aligned_rows<T>(n, views)};
}

/// One thread per vector of y, in a grid-stride loop.
///
/// y [rows, n] = silu(gate) * up, of x [rows, 2n]: n elements of gate, then n of up.
template <class T>
__global__ void __launch_bounds__(kBlockSize) silu_mul_forward(T* y, const T* x, GatedRows<T> rows) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < rows.items; item += stride.step) {
    const std::int64_t row = item / rows.vecs, column = item % rows.vecs * kVec<T>;
    const int valid = valid_elements<T>(rows.n, column);
    const T* from = x + 2 * row * rows.n + column;
    Floats<T> out = load(from, valid, rows.aligned);
    const Floats<T> up = load(from + rows.n, valid, rows.aligned);
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) out[i] = out[i] * cuda::sigmoid(out[i]) * up[i];
    store(y + row * rows.n + column, out, valid, rows.aligned);
  }
}

/// One thread per vector of dy, in a grid-stride loop.
///
/// dx, x [rows, 2n]; dy [rows, n].
template <class T>
__global__ void __launch_bounds__(kBlockSize) silu_mul_backward(T* dx, const T* dy, const T* x, GatedRows<T> rows) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t item = stride.first; item < rows.items; item += stride.step) {
    const std::int64_t row = item / rows.vecs, column = item % rows.vecs * kVec<T>;
    const int valid = valid_elements<T>(rows.n, column);
    const std::int64_t at = 2 * row * rows.n + column;
    const Floats<T> gate = load(x + at, valid, rows.aligned), up = load(x + at + rows.n, valid, rows.aligned);
    const Floats<T> slope = load(dy + row * rows.n + column, valid, rows.aligned);
    Floats<T> of_gate, of_up;
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) {
      const float s = cuda::sigmoid(gate[i]);
      of_gate[i] = slope[i] * up[i] * s * (1 + gate[i] * (1 - s));
      of_up[i] = slope[i] * gate[i] * s;
    }
    store(dx + at, of_gate, valid, rows.aligned);
    store(dx + at + rows.n, of_up, valid, rows.aligned);
  }
}

} // namespace

void FusedKernels::do_add(const Add& args, const OpContext& context) {
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    const FlatVecs<T> flat = flat_vecs<T>(args.y.elements(), {&args.y, &args.a, &args.b});
    launch_items(Op::add, context, flat.vecs(), add_vecs<T>, args.y.as<T>(), args.a.as<const T>(), args.b.as<const T>(),
                 flat);
  });
}

void FusedKernels::do_act_fwd(const ActFwd& args, const OpContext& context) {
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    if (args.act == Activation::silu_mul) {
      const GatedRows<T> rows = gated_rows<T>(args.y, {&args.y, &args.x});
      return launch_items(Op::act_fwd, context, rows.items, silu_mul_forward<T>, args.y.as<T>(), args.x.as<const T>(),
                          rows);
    }
    const FlatVecs<T> flat = flat_vecs<T>(args.x.elements(), {&args.y, &args.x});
    launch_items(Op::act_fwd, context, flat.vecs(), gelu_forward<T>, args.y.as<T>(), args.x.as<const T>(), flat);
  });
}

void FusedKernels::do_act_bwd(const ActBwd& args, const OpContext& context) {
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    if (args.act == Activation::silu_mul) {
      const GatedRows<T> rows = gated_rows<T>(args.dy, {&args.dx, &args.dy, &args.x});
      return launch_items(Op::act_bwd, context, rows.items, silu_mul_backward<T>, args.dx.as<T>(),
                          args.dy.as<const T>(), args.x.as<const T>(), rows);
    }
    const FlatVecs<T> flat = flat_vecs<T>(args.x.elements(), {&args.dx, &args.dy, &args.x});
    launch_items(Op::act_bwd, context, flat.vecs(), gelu_backward<T>, args.dx.as<T>(), args.dy.as<const T>(),
                 args.x.as<const T>(), flat);
  });
}

} // namespace triax::kernels_fused
