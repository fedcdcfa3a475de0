// SPDX-License-Identifier: Apache-2.0
// CUDA calls: streams, capture and graphs.
#include "capture.hpp"
#include "errors.hpp"
#include "handles.hpp"

namespace triax::gpu_stand_in {

namespace {

struct GraphExec {
  std::shared_ptr<const Graph> graph;
  MarkerPtr last; // of the launch before: launches of one graph run one after the other
};

HandleTable<cudaGraph_t, Graph>& graphs() {
  static auto& table = *new HandleTable<cudaGraph_t, Graph>("graph");
  return table;
}
HandleTable<cudaGraphExec_t, GraphExec>& execs() {
  static auto& table = *new HandleTable<cudaGraphExec_t, GraphExec>("executable graph");
  return table;
}

cudaError_t make_stream(const char* name, cudaStream_t* stream, unsigned flags) {
  return call(name, Check::kSticky, [&] {
    if (!stream) throw CallError(cudaErrorInvalidValue, "the pointer to the stream is null");
    if ((flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
      throw CallError(cudaErrorInvalidValue, "flags " + std::to_string(flags) + " are not known");
    }
    *stream = create_stream(flags == cudaStreamDefault);
  });
}

void launch_graph(GraphExec& exec, Stream& stream) {
  if (exec.graph->device != stream.device().number()) {
    throw CallError(cudaErrorInvalidResourceHandle, "the graph is GPU " + std::to_string(exec.graph->device) +
                                                        "'s, and " + stream.name() + " is GPU " +
                                                        std::to_string(stream.device().number()) + "'s");
  }
  if (exec.last && !exec.last->is_done()) submit(stream, wait_for(exec.last, "wait for the launch before"));
  if (MarkerPtr done = submit(stream, graph_work(exec.graph))) exec.last = std::move(done);
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return make_stream("cudaStreamCreate", stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return make_stream("cudaStreamCreateWithFlags", stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", Check::kNone, [&] { remove_stream(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", Check::kCapture, [&] {
    const StreamPtr stream = find_stream(handle);
    require_no_capture(*stream, "cudaStreamSynchronize");
    stream->wait();
    if (const cudaError_t sticky = stream->device().sticky(); sticky != cudaSuccess) throw CallError(sticky);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return query("cudaStreamQuery", [&] {
    const StreamPtr stream = find_stream(handle);
    require_no_capture(*stream, "cudaStreamQuery");
    if (!stream->is_idle()) return false;
    if (const cudaError_t sticky = stream->device().sticky(); sticky != cudaSuccess) throw CallError(sticky);
    return true;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", Check::kSticky, [&] {
    const StreamPtr stream = find_stream(handle);
    if (handle == nullptr || handle == cudaStreamLegacy) {
      throw CallError(cudaErrorStreamCaptureUnsupported, "the legacy default stream cannot capture");
    }
    begin_capture(stream, mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", Check::kSticky, [&] {
    *graph = nullptr;
    *graph = graphs().add(std::make_shared<Graph>(end_capture(*find_stream(handle))));
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", Check::kSticky, [&] {
    const StreamPtr stream = find_stream(handle);
    std::lock_guard lock(capture_mutex());
    *status = !stream->capture                   ? cudaStreamCaptureStatusNone
              : stream->capture->invalid.empty() ? cudaStreamCaptureStatusActive
                                                 : cudaStreamCaptureStatusInvalidated;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return call("cudaGraphInstantiate", Check::kSticky, [&] {
    if (flags != 0) throw CallError(cudaErrorNotSupported, "the stand-in knows no flags of graphs");
    *exec = execs().add(std::make_shared<GraphExec>(GraphExec{graphs().get(graph), nullptr}));
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphLaunch", Check::kSticky, [&] { launch_graph(*execs().get(exec), *find_stream(stream)); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", Check::kNone, [&] { graphs().take(graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call("cudaGraphExecDestroy", Check::kNone, [&] { execs().take(exec); });
}

} // extern "C"
