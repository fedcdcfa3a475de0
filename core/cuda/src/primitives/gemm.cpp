// SPDX-License-Identifier: Apache-2.0
// Products of matrices by cuBLAS.
//
// cuBLAS is column-major. A row-major matrix is its transpose there, and d = op(a) op(b) becomes
// d^T = op(b)^T op(a)^T: the operands swap, and each keeps its transposition.
// Its workspace is the call's scratch, always of one size, and it reduces 16-bit products in f32: the same shapes and
// alignments take the same kernels and give the same bits.
#include <cublas_v2.h>

#include <algorithm>

#include "internal.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/precision.hpp"

namespace triax::cuda {

namespace {

cudaDataType_t type_of(const TensorView& x) {
  switch (x.dtype()) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw Error(text("products on GPUs are of fp32, bf16 and fp16, not of {}", precision_name(x.dtype())));
  }
}

/// Leading dimension. The stride of a single row is not used and may have any value.
std::int64_t leading(const TensorView& x) {
  const std::int64_t least = std::max<std::int64_t>(x.size(-1), 1);
  return x.size(-2) > 1 ? x.stride(-2) : least;
}

/// Size and stride of the batch dimension `dim` of two, of which a matrix has up to two.
std::int64_t batch_size(const TensorView& x, int dim) {
  const int at = x.rank() - 4 + dim;
  return at < 0 ? 1 : x.size(at);
}
std::int64_t batch_stride(const TensorView& x, int dim) {
  const int at = x.rank() - 4 + dim;
  return at < 0 ? 0 : x.stride(at);
}

std::byte* outer(const TensorView& x, std::int64_t index) {
  const auto bytes = static_cast<std::int64_t>(bytes_of(x.dtype()));
  return x.as<std::byte>() + index * batch_stride(x, 0) * bytes;
}

} // namespace

void Primitives::check(int status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto known = static_cast<cublasStatus_t>(status);
  throw Error(text("{}: {} ({})", call, cublasGetStatusString(known), cublasGetStatusName(known)), settings_.plugin,
              "set CUBLAS_LOGINFO_DBG=1 and CUBLAS_LOGDEST_DBG=stderr for details");
}

void Primitives::start(Device& device) {
  TRIAX_REQUIRE(device.kind() == DeviceKind::cuda, "{} computes on a CUDA device, not on {}", settings_.plugin,
                device.description());
  check(cublasCreate(&handle_), "cublasCreate");
  check(cublasSetMathMode(
            handle_, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "cublasSetMathMode");
  check(cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
}

Primitives::~Primitives() {
  if (handle_) cublasDestroy(handle_);
}

/// Sets stream and workspace of the handle for this call. cublasSetStream() resets the workspace.
void Primitives::use(const OpContext& context) {
  const cudaStream_t stream = launch_stream(context.stream);
  if (workspace_ && stream == stream_ && context.scratch.data() == workspace_) return;
  check(cublasSetStream(handle_, stream), "cublasSetStream");
  check(cublasSetWorkspace(handle_, context.scratch.data(), kWorkspace), "cublasSetWorkspace");
  stream_ = stream;
  workspace_ = context.scratch.data();
}

void Primitives::do_gemm(const Gemm& args, const OpContext& context) {
  const std::int64_t m = args.d.size(-2), n = args.d.size(-1), k = args.a.size(args.transpose_a ? -2 : -1);
  if (args.d.elements() == 0) return;
  if (k == 0) return launch_beta(args.d, static_cast<float>(args.beta), context);
  const float alpha = static_cast<float>(args.alpha), beta = static_cast<float>(args.beta);
  const cublasOperation_t of_a = args.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_b = args.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const bool single = args.a.dtype() == DType::f32;
  const cublasComputeType_t compute = single && settings_.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  for (std::int64_t i = 0; i < batch_size(args.d, 0); ++i) {
    use(context); // asks for the stream again: each product is a separate enqueue
    check(cublasGemmStridedBatchedEx_64(handle_, of_b, of_a, n, m, k, &alpha, outer(args.b, i), type_of(args.b),
                                        leading(args.b), batch_stride(args.b, 1), outer(args.a, i), type_of(args.a),
                                        leading(args.a), batch_stride(args.a, 1), &beta, outer(args.d, i),
                                        type_of(args.d), leading(args.d), batch_stride(args.d, 1),
                                        batch_size(args.d, 1), compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  }
}

} // namespace triax::cuda
