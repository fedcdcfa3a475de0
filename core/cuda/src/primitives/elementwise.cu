// SPDX-License-Identifier: Apache-2.0
// Bias, sums, dropout, activations, and the scaling of a product with K = 0.
#include "internal.hpp"
#include "triax/cuda/activations.cuh"
#include "triax/cuda/drop.hpp"
#include "triax/cuda/index.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void add_bias(T* y, const T* x, const T* bias, std::int64_t n, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step)
    y[i] = rounded<T>(value_of(x[i]) + value_of(bias[i % n]));
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void add_elements(T* y, const T* a, const T* b, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) y[i] = rounded<T>(value_of(a[i]) + value_of(b[i]));
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void drop_elements(T* y, const T* x, DropArguments drop, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step)
    y[i] = rounded<T>(dropped(drop, i) ? 0.0f : value_of(x[i]) * drop.scale);
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void gelu_forward(T* y, const T* x, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) y[i] = rounded<T>(gelu(value_of(x[i])));
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void gelu_backward(T* dx, const T* dy, const T* x, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step)
    dx[i] = rounded<T>(value_of(dy[i]) * gelu_derivative(value_of(x[i])));
}

/// One thread per element, in a grid-stride loop.
///
/// x [rows, 2n], y [rows, n].
template <class T>
__global__ void silu_mul_forward(T* y, const T* x, std::int64_t n, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    const std::int64_t at = i / n * 2 * n + i % n;
    const float gate = value_of(x[at]), up = value_of(x[at + n]);
    y[i] = rounded<T>(gate * sigmoid(gate) * up);
  }
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void silu_mul_backward(T* dx, const T* dy, const T* x, std::int64_t n, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    const std::int64_t at = i / n * 2 * n + i % n;
    const float gate = value_of(x[at]), up = value_of(x[at + n]), g = value_of(dy[i]), s = sigmoid(gate);
    dx[at] = rounded<T>(g * up * s * (1 + gate * (1 - s)));
    dx[at + n] = rounded<T>(g * gate * s);
  }
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void scale_product(T* d, Strided at, float beta, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    T& element = d[offset_of(at, i)];
    element = rounded<T>(beta == 0 ? 0.0f : beta * value_of(element)); // what is not read may be NaN
  }
}

} // namespace

void Primitives::do_bias_add(const BiasAdd& args, const OpContext& context) {
  over_elements(Op::bias_add, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    launch(add_bias<T>, args.y.as<T>(), args.x.as<const T>(), args.bias.as<const T>(), args.x.size(-1), count);
  });
}

void Primitives::do_add(const Add& args, const OpContext& context) {
  over_elements(Op::add, args.y, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    launch(add_elements<T>, args.y.as<T>(), args.a.as<const T>(), args.b.as<const T>(), count);
  });
}

void Primitives::do_dropout(const Dropout& args, const OpContext& context) {
  if (args.drop.p == 0) {
    if (args.y.data() != args.x.data())
      TRIAX_CUDA(cudaMemcpyAsync(args.y.data(), args.x.data(), args.x.bytes(), cudaMemcpyDeviceToDevice,
                                 launch_stream(context.stream)));
    return;
  }
  over_elements(Op::dropout, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    launch(drop_elements<T>, args.y.as<T>(), args.x.as<const T>(), drop_arguments(args), count);
  });
}

void Primitives::do_act_fwd(const ActFwd& args, const OpContext& context) {
  over_elements(Op::act_fwd, args.y, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    T* y = args.y.as<T>();
    const T* x = args.x.as<const T>();
    if (args.act == Activation::gelu_tanh) return launch(gelu_forward<T>, y, x, count);
    launch(silu_mul_forward<T>, y, x, args.y.size(-1), count);
  });
}

void Primitives::do_act_bwd(const ActBwd& args, const OpContext& context) {
  over_elements(Op::act_bwd, args.dy, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    T* dx = args.dx.as<T>();
    const T *dy = args.dy.as<const T>(), *x = args.x.as<const T>();
    if (args.act == Activation::gelu_tanh) return launch(gelu_backward<T>, dx, dy, x, count);
    launch(silu_mul_backward<T>, dx, dy, x, args.dy.size(-1), count);
  });
}

void launch_beta(const TensorView& d, float beta, const OpContext& context) {
  over_elements(Op::gemm, d, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    launch(scale_product<T>, d.as<T>(), strided(d), beta, count);
  });
}

} // namespace triax::cuda
