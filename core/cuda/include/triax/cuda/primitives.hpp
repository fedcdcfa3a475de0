// SPDX-License-Identifier: Apache-2.0
// A kernel set for GPUs with all primitives and no fused operation: matrix products by cuBLAS, one plain
// kernel for each other primitive. Kernel sets derive from it and override the operations that they improve; link
// triax::cuda_primitives.
//
// Threads: the rank's main thread. Ownership: owns a cuBLAS handle; memory is passed in as views. Blocking: operations
// are enqueued on their stream; enqueueing may run the progress loop (launch_stream()). Errors: Error for a type other
// than f32, bf16 and f16, for an operation without its StepScalars, and for errors of CUDA and cuBLAS. Arithmetic is
// f32; sums of squares and losses are double. Each sum has an order that its shape determines, and no kernel uses
// atomics, so the same call gives the same bits. Fused operations are the core's defaults.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "triax/kernels.hpp"

struct cublasContext;

namespace triax::cuda {

/// Settings of a kernel set that derives from Primitives.
struct PrimitivesSettings {
  std::string plugin; // name of the kernel set's plugin, for messages
  bool tf32 = false;  // matrix products of f32 may round their inputs to TF32
};

/// A kernel set with all primitives, for GPUs: derive from it.
class Primitives : public KernelSet {
 public:
  explicit Primitives(PrimitivesSettings settings) : settings_(std::move(settings)) {}
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;
  ~Primitives() override;

  DeviceKind device_kind() const noexcept override { return DeviceKind::cuda; }
  Refusals device_available(const DeviceRequest& request) const override;
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const override;
  Refusals supports(const KernelRequest& request) const override;
  Refusals supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void start(Device& device) override;

 protected:
#define TRIAX_OP_OVERRIDE(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_PRIMITIVES(TRIAX_OP_OVERRIDE)
#undef TRIAX_OP_OVERRIDE

  /// The settings of the constructor.
  const PrimitivesSettings& settings() const noexcept {
    return settings_;
  }

 private:
  void use(const OpContext& context);
  void check(int status, const char* call) const;

  const PrimitivesSettings settings_;
  cublasContext* handle_ = nullptr;
  cudaStream_t stream_ = nullptr; // current stream of the handle
  void* workspace_ = nullptr;     // current workspace of the handle
};

/// Scratch of a matrix product: cuBLAS's workspace, of the size that cuBLAS recommends for Hopper.
inline constexpr std::size_t kWorkspace = std::size_t{32} << 20;

} // namespace triax::cuda
