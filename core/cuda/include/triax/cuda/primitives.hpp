// A kernel set on GPUs with every primitive and nothing fused: products by cuBLAS, one plain kernel for each of the
// others. Sets derive from it and override what they do better; link triax::cuda_primitives.
//
// Threads: the rank's main thread. Ownership: owns a cuBLAS handle; memory comes in as views. Blocking: never: an
// operation is put on its stream. Errors: Error for a type other than f32, bf16 and f16, for a step without its
// scalars, and for what CUDA or cuBLAS refuse. Data may be f32, bf16 or f16; arithmetic is f32, sums of squares and
// losses are double. Every sum has an order that its shape fixes, and there are no atomics: the same call gives the
// same bits. Fused operations are the core's defaults.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "triax/kernels.hpp"

struct cublasContext;

namespace triax::cuda {

struct PrimitivesSettings {
  std::string plugin; // whose set this is, for messages
  bool tf32 = false;  // products of f32 matrices may round their factors to TF32
};

class Primitives : public KernelSet {
 public:
  explicit Primitives(PrimitivesSettings settings) : settings_(std::move(settings)) {}
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;
  ~Primitives() override;

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

  const PrimitivesSettings& settings() const noexcept {
    return settings_;
  }

 private:
  void use(const OpContext& context);
  void check(int status, const char* call) const;

  const PrimitivesSettings settings_;
  cublasContext* handle_ = nullptr;
  cudaStream_t stream_ = nullptr; // that the handle is set to
  void* workspace_ = nullptr;     // the same
};

/// Scratch of a product: cuBLAS's workspace, what it asks for on Hopper.
inline constexpr std::size_t kWorkspace = std::size_t{32} << 20;

} // namespace triax::cuda
