// SPDX-License-Identifier: Apache-2.0
// Sums, and GELU (tanh form) with its gradient. silu_mul is the primitives'.
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

} // namespace

void FusedKernels::do_add(const Add& args, const OpContext& context) {
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    const FlatVecs<T> flat = flat_vecs<T>(args.y.elements(), {&args.y, &args.a, &args.b});
    launch_items(Op::add, context, flat.vecs(), add_vecs<T>, args.y.as<T>(), args.a.as<const T>(), args.b.as<const T>(),
                 flat);
  });
}

void FusedKernels::do_act_fwd(const ActFwd& args, const OpContext& context) {
  if (args.act != Activation::gelu_tanh) return Primitives::do_act_fwd(args, context);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const FlatVecs<T> flat = flat_vecs<T>(args.x.elements(), {&args.y, &args.x});
    launch_items(Op::act_fwd, context, flat.vecs(), gelu_forward<T>, args.y.as<T>(), args.x.as<const T>(), flat);
  });
}

void FusedKernels::do_act_bwd(const ActBwd& args, const OpContext& context) {
  if (args.act != Activation::gelu_tanh) return Primitives::do_act_bwd(args, context);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const FlatVecs<T> flat = flat_vecs<T>(args.x.elements(), {&args.dx, &args.dy, &args.x});
    launch_items(Op::act_bwd, context, flat.vecs(), gelu_backward<T>, args.dx.as<T>(), args.dy.as<const T>(),
                 args.x.as<const T>(), flat);
  });
}

} // namespace triax::kernels_fused
