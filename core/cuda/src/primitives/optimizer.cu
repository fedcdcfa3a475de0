// SPDX-License-Identifier: Apache-2.0
// The decision about a step, and the optimizers' updates of one flat shard. The step's scalars are written and read on
// the GPU: a step that is skipped leaves everything as it is without the host knowing.
#include "internal.hpp"
#include "triax/cuda/launching.cuh"
#include "triax/step_control.hpp"

namespace triax::cuda {

namespace {

struct AdamWValues {
  double beta1, beta2;
  float eps, decay;
};

/// One thread per element, in a grid-stride loop.
///
/// working: of type W, or null.
template <class W>
__global__ void step_adamw(float* p, const float* gradient, float* m, float* v, W* working, const StepScalars* scalars,
                           AdamWValues values, std::int64_t count) {
  __shared__ double corrections[2];
  const StepScalars now = *scalars;
  if (now.skip != 0) return;
  if (threadIdx.x == 0) {
    corrections[0] = 1 - pow(values.beta1, static_cast<double>(now.step));
    corrections[1] = 1 - pow(values.beta2, static_cast<double>(now.step));
  }
  __syncthreads();
  const auto correction1 = static_cast<float>(corrections[0]), correction2 = static_cast<float>(corrections[1]);
  const auto beta1 = static_cast<float>(values.beta1), beta2 = static_cast<float>(values.beta2);
  const auto rest1 = static_cast<float>(1 - values.beta1), rest2 = static_cast<float>(1 - values.beta2);
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    const float g = gradient[i] * now.clip;
    const float first = beta1 * m[i] + rest1 * g, second = beta2 * v[i] + rest2 * g * g;
    const float update = first / correction1 / (sqrtf(second / correction2) + values.eps) + values.decay * p[i];
    m[i] = first;
    v[i] = second;
    p[i] -= now.lr * update;
    if (working) working[i] = rounded<W>(p[i]);
  }
}

/// One block. All threads load squares into shared memory; thread 0 adds them in the order of `order`.
__global__ void control_step(const double* squares, const std::int32_t* order, std::int64_t count, const double* losses,
                             std::int64_t samples, StepScalars* scalars, double clip_grad, LossScaling scaling) {
  __shared__ double loaded[kBlockSize];
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += blockDim.x) {
    const std::int64_t i = begin + threadIdx.x;
    if (i < count) loaded[threadIdx.x] = squares[order[i]];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (std::int64_t k = 0; k < blockDim.x && begin + k < count; ++k) sum += loaded[k];
    }
    __syncthreads();
  }
  bool finite = true;
  for (std::int64_t i = threadIdx.x; i < samples; i += blockDim.x) finite = finite && isfinite(losses[i]);
  finite = __syncthreads_and(finite) != 0;
  if (threadIdx.x == 0) decide_step(*scalars, sqrt(sum), finite, clip_grad, scaling);
}

struct SgdValues {
  float momentum, decay;
};

/// One thread per element, in a grid-stride loop.
///
/// velocity, working: may be null.
template <class W>
__global__ void step_sgd(float* p, const float* gradient, float* velocity, W* working, const StepScalars* scalars,
                         SgdValues values, std::int64_t count) {
  const StepScalars now = *scalars;
  if (now.skip != 0) return;
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    float u = gradient[i] * now.clip + values.decay * p[i];
    if (values.momentum != 0) {
      if (now.step > 1) u += values.momentum * velocity[i];
      velocity[i] = u;
    }
    p[i] -= now.lr * u;
    if (working) working[i] = rounded<W>(p[i]);
  }
}

template <class Scalars>
Scalars* given(Scalars* scalars, Op op) {
  if (!scalars)
    throw Error(text("{}: the scalars of the step are missing", name_of(op)), {}, "set `scalars` of its arguments");
  return scalars;
}

/// body(pointer) to the working copy: null, of type float, where there is none.
template <class Body>
void with_working(const TensorView& working, Body body) {
  if (working.empty()) return body(static_cast<float*>(nullptr));
  by_type(working.dtype(), [&](auto zero) { body(working.as<decltype(zero)>()); });
}

} // namespace

void Primitives::do_step_control(const StepControl& args, const OpContext& context) {
  StepScalars* scalars = given(args.scalars, Op::step_control);
  const Launch launch(Op::step_control, Grid{}, context);
  launch(control_step, args.squares.as<const double>(), args.order.as<const std::int32_t>(), args.order.elements(),
         args.losses.as<const double>(), args.losses.elements(), scalars, args.clip_grad, args.scaling);
}

void Primitives::do_adamw(const AdamW& args, const OpContext& context) {
  const StepScalars* scalars = given(args.scalars, Op::adamw);
  const std::int64_t count = args.master.elements();
  if (count == 0) return;
  const Launch launch(Op::adamw, grid_of_elements(count), context);
  const AdamWValues values{args.beta1, args.beta2, static_cast<float>(args.eps), static_cast<float>(args.decay)};
  with_working(args.working, [&]<class W>(W* working) {
    launch(step_adamw<W>, args.master.as<float>(), args.gradient.as<const float>(), args.m.as<float>(),
           args.v.as<float>(), working, scalars, values, count);
  });
}

void Primitives::do_sgd(const Sgd& args, const OpContext& context) {
  const StepScalars* scalars = given(args.scalars, Op::sgd);
  const std::int64_t count = args.master.elements();
  if (count == 0) return;
  const Launch launch(Op::sgd, grid_of_elements(count), context);
  const SgdValues values{static_cast<float>(args.momentum), static_cast<float>(args.decay)};
  with_working(args.working, [&]<class W>(W* working) {
    launch(step_sgd<W>, args.master.as<float>(), args.gradient.as<const float>(), args.velocity.as<float>(), working,
           scalars, values, count);
  });
}

} // namespace triax::cuda
