// A CUDA graph of what was captured on a stream.
//
// Threads: the rank's main thread. Ownership: owns the executable graph. Blocking: never. Errors: Error.
#pragma once

#include <cuda_runtime_api.h>

#include "triax/recording.hpp"

namespace triax::cuda {

class CudaRecording final : public Recording {
 public:
  /// Makes `captured` executable, and takes it.
  explicit CudaRecording(cudaGraph_t captured);
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override;
  void launch(Stream& stream) override;

 private:
  cudaGraphExec_t graph_ = nullptr;
};

} // namespace triax::cuda
