// The decision about a step, and the optimizers' updates of one flat shard. The step's scalars are written and read on
// the GPU: a step that is skipped leaves everything as it is without the host knowing.
#include "kernels.hpp"
#include "triax/cuda/check.hpp"
#include "triax/cuda/device.hpp"
#include "triax/step_control.hpp"
#include "types.hpp"

namespace triax::cublas {

namespace {

using cuda::launch_stream;
using cuda::my_share;
using cuda::Share;

struct AdamWValues {
  double beta1, beta2;
  float eps, decay;
};

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
  const Share share = my_share();
  for (std::int64_t i = share.first; i < count; i += share.step) {
    const float g = gradient[i] * now.clip;
    const float first = beta1 * m[i] + rest1 * g, second = beta2 * v[i] + rest2 * g * g;
    const float update = first / correction1 / (sqrtf(second / correction2) + values.eps) + values.decay * p[i];
    m[i] = first;
    v[i] = second;
    p[i] -= now.lr * update;
    if (working) working[i] = rounded<W>(p[i]);
  }
}

/// One block. Its threads bring the squares near, its first adds them, in the order that is asked for.
__global__ void control_step(const double* squares, const std::int32_t* order, std::int64_t count, const double* losses,
                             std::int64_t samples, StepScalars* scalars, double clip_grad, LossScaling scaling) {
  __shared__ double near[cuda::kThreads];
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += blockDim.x) {
    const std::int64_t i = begin + threadIdx.x;
    if (i < count) near[threadIdx.x] = squares[order[i]];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (std::int64_t k = 0; k < blockDim.x && begin + k < count; ++k) sum += near[k];
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

/// velocity, working: may be null.
template <class W>
__global__ void step_sgd(float* p, const float* gradient, float* velocity, W* working, const StepScalars* scalars,
                         SgdValues values, std::int64_t count) {
  const StepScalars now = *scalars;
  if (now.skip != 0) return;
  const Share share = my_share();
  for (std::int64_t i = share.first; i < count; i += share.step) {
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
  if (!scalars) throw Error(text("{}: the step's scalars are not given", name_of(op)));
  return scalars;
}

/// body(pointer) to the working copy: null, of type float, where there is none.
template <class Body>
void with_working(const TensorView& working, Body body) {
  if (working.empty()) return body(static_cast<float*>(nullptr));
  by_type(working.dtype(), [&](auto zero) { body(working.as<decltype(zero)>()); });
}

} // namespace

void CublasKernels::do_step_control(const StepControl& args, const OpContext& context) {
  StepScalars* scalars = given(args.scalars, Op::step_control);
  control_step<<<1, cuda::kThreads, 0, launch_stream(context.stream)>>>(
      args.squares.as<const double>(), args.order.as<const std::int32_t>(), args.order.elements(),
      args.losses.as<const double>(), args.losses.elements(), scalars, args.clip_grad, args.scaling);
  TRIAX_CUDA_LAUNCHED("step_control");
}

void CublasKernels::do_adamw(const AdamW& args, const OpContext& context) {
  const StepScalars* scalars = given(args.scalars, Op::adamw);
  const std::int64_t count = args.master.elements();
  if (count == 0) return;
  const auto grid = grid_of_elements(count);
  const cudaStream_t stream = launch_stream(context.stream);
  const AdamWValues values{args.beta1, args.beta2, static_cast<float>(args.eps), static_cast<float>(args.decay)};
  with_working(args.working, [&](auto* working) {
    step_adamw<<<grid.blocks, grid.threads, 0, stream>>>(args.master.as<float>(), args.gradient.as<const float>(),
                                                         args.m.as<float>(), args.v.as<float>(), working, scalars,
                                                         values, count);
  });
  TRIAX_CUDA_LAUNCHED("adamw");
}

void CublasKernels::do_sgd(const Sgd& args, const OpContext& context) {
  const StepScalars* scalars = given(args.scalars, Op::sgd);
  const std::int64_t count = args.master.elements();
  if (count == 0) return;
  const auto grid = grid_of_elements(count);
  const cudaStream_t stream = launch_stream(context.stream);
  const SgdValues values{static_cast<float>(args.momentum), static_cast<float>(args.decay)};
  with_working(args.working, [&](auto* working) {
    step_sgd<<<grid.blocks, grid.threads, 0, stream>>>(args.master.as<float>(), args.gradient.as<const float>(),
                                                       args.velocity.as<float>(), working, scalars, values, count);
  });
  TRIAX_CUDA_LAUNCHED("sgd");
}

} // namespace triax::cublas
