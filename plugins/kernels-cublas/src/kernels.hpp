// The unfused kernel set on GPUs: products by cuBLAS, everything else one plain kernel for each primitive.
//
// Threads: the rank's main thread. Ownership: owns a cuBLAS handle; memory comes in as views. Blocking: never: an
// operation is put on its stream. Errors: Error for a type other than f32, bf16 and f16, for a step without its
// scalars, and for what CUDA or cuBLAS refuse. Data may be f32, bf16 or f16; arithmetic is f32, sums of squares and
// losses are double. Every sum has an order that its shape fixes, and there are no atomics: the same call gives the
// same bits. Fused operations are the core's defaults.
#pragma once

#include <cublas_v2.h>

#include <cstddef>

#include "triax/kernels.hpp"
#include "triax/plugin.hpp"

namespace triax::cublas {

class CublasKernels final : public KernelSet {
 public:
  explicit CublasKernels(const PluginContext& context);
  CublasKernels(const CublasKernels&) = delete;
  CublasKernels& operator=(const CublasKernels&) = delete;
  ~CublasKernels() override;

  DeviceKind device_kind() const noexcept override { return DeviceKind::cuda; }
  Support device_available(const DeviceRequest& request) const override;
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const override;
  Support supports(const KernelRequest& request) const override;
  Support supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void start(Device& device) override;

 protected:
#define TRIAX_OP(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_PRIMITIVES(TRIAX_OP)
#undef TRIAX_OP

 private:
  void use(const OpContext& context);

  const bool tf32_;
  cublasHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr; // that the handle is set to
  void* workspace_ = nullptr;     // the same
};

/// Scratch that an operation takes from the front of its call's.
std::size_t scratch_of(const BiasBwd& args);
std::size_t scratch_of(const NormBwdWeight& args);
std::size_t scratch_of(const SumSquares& args);
std::size_t scratch_of(const Nonfinite& args);
inline constexpr std::size_t kWorkspace = std::size_t{32} << 20; // of cuBLAS: what it asks for on Hopper

/// d *= beta, for a product without terms. d may be strided; with beta = 0 it is not read.
void launch_beta(const TensorView& d, float beta, cudaStream_t stream);

} // namespace triax::cublas
