// SPDX-License-Identifier: Apache-2.0
#include "cuda_recording.hpp"

#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"

namespace triax::cuda {

CudaRecording::CudaRecording(cudaGraph_t captured) {
  const cudaError_t made = cudaGraphInstantiate(&graph_, captured, 0);
  cudaGraphDestroy(captured);
  TRIAX_CUDA(made);
}

CudaRecording::~CudaRecording() {
  cudaGraphExecDestroy(graph_); // graphs that were launched still run
}

void CudaRecording::launch(Stream& stream) {
  TRIAX_CUDA(cudaGraphLaunch(graph_, launch_stream(stream)));
}

} // namespace triax::cuda
