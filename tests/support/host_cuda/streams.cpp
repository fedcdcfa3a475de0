// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs. Work on a stream runs inside the call that enqueues it, so every event reads as complete.
// A captured stream stores its work; a stream that waits for an event of a capture joins it.
#include "support/host_cuda/streams.hpp"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "support/host_cuda/launch.hpp"
#include "triax/error.hpp"

namespace {

using Work = std::function<void()>;

/// Work of all streams of a capture, in the order of enqueuing.
struct Tape {
  std::vector<Work> items;
};

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<int> graphs{0}; // launched

} // namespace

struct CUstream_st {
  std::shared_ptr<Tape> begun; // capture that began with this stream
  std::weak_ptr<Tape> tape;    // where its work goes until the capture ends
};
struct CUevent_st {
  std::weak_ptr<Tape> tape; // the unfinished capture in which it was last recorded
};
struct CUgraph_st {
  std::vector<Work> items;
};
struct CUgraphExec_st {
  std::vector<Work> items;
};

namespace triax::test::host_cuda {

void put(cudaStream_t stream, std::function<void()> work) {
  TRIAX_REQUIRE(stream, "work is put on the default stream, which this code has no use for");
  if (const auto tape = stream->tape.lock()) return tape->items.push_back(std::move(work));
  work();
}

int graphs_launched() noexcept {
  return graphs;
}

cudaError_t failed_with(cudaError_t error) {
  return last_error = error;
}

} // namespace triax::test::host_cuda

using namespace triax::test::host_cuda;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = std::make_unique<CUstream_st>().release();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::unique_ptr<CUstream_st> gone(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream->tape.expired() ? cudaSuccess : failed_with(cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!event->tape.expired()) stream->tape = event->tape;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = std::make_unique<CUevent_st>().release();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::unique_ptr<CUevent_st> gone(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->tape = stream->tape;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event->tape.expired() ? cudaSuccess : failed_with(cudaErrorCapturedEvent);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream->tape.expired()) return failed_with(cudaErrorStreamCaptureUnsupported);
  stream->begun = std::make_shared<Tape>();
  stream->tape = stream->begun;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!stream->begun) return failed_with(cudaErrorInvalidValue);
  *graph = std::make_unique<CUgraph_st>(CUgraph_st{std::move(stream->begun->items)}).release();
  stream->begun.reset();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = std::make_unique<CUgraphExec_st>(CUgraphExec_st{graph->items}).release();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::unique_ptr<CUgraph_st> gone(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::unique_ptr<CUgraphExec_st> gone(executable);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ++graphs;
  put(stream, [items = executable->items] {
    for (const Work& item : items) item();
  });
  return cudaSuccess;
}
