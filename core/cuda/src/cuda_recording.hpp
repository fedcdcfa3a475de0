// SPDX-License-Identifier: Apache-2.0
// A captured step as an executable CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include "triax/recording.hpp"

namespace triax::cuda {

class CudaRecording final : public Recording {
 public:
  /// Instantiates `captured` and destroys it.
  explicit CudaRecording(cudaGraph_t captured);
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override;
  void launch(Stream& stream) override;

 private:
  cudaGraphExec_t graph_ = nullptr;
};

} // namespace triax::cuda
