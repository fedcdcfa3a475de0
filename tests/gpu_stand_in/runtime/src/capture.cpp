// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <algorithm>
#include <utility>

#include "errors.hpp"

namespace triax::gpu_stand_in {

namespace {

std::vector<Capture*>& open_captures() { // guarded by capture_mutex()
  static auto& open = *new std::vector<Capture*>;
  return open;
}

// Nodes that the last nodes of the origin stream come after, directly or not.
std::size_t count_joined(const Graph& graph, std::vector<int> unvisited) {
  std::vector<bool> seen(graph.nodes.size());
  std::size_t count = 0;
  while (!unvisited.empty()) {
    const auto node = static_cast<std::size_t>(unvisited.back());
    unvisited.pop_back();
    if (seen[node]) continue;
    seen[node] = true;
    ++count;
    for (const int before : graph.nodes[node].after) unvisited.push_back(before);
  }
  return count;
}

} // namespace

std::mutex& capture_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

void invalidate(Capture& capture, const std::string& why) {
  if (capture.invalid.empty()) capture.invalid = why;
}

void capture_work(Stream& stream, StreamWork work) {
  Capture& capture = *stream.capture;
  if (!capture.invalid.empty()) throw CallError(cudaErrorStreamCaptureInvalidated, capture.invalid);
  const auto number = static_cast<int>(capture.graph.nodes.size());
  capture.graph.nodes.push_back({std::move(work), std::exchange(stream.frontier, {number})});
}

void join_capture(Stream& stream, const std::shared_ptr<Capture>& capture, const std::vector<int>& frontier) {
  if (stream.capture && stream.capture != capture) {
    const std::string why = stream.name() + " would join two captures";
    invalidate(*stream.capture, why);
    invalidate(*capture, why);
    throw CallError(cudaErrorStreamCaptureMerge, why);
  }
  if (!stream.capture) {
    stream.capture = capture;
    stream.frontier.clear();
    capture->members.insert(stream.shared_from_this());
  }
  for (const int node : frontier) {
    if (std::ranges::find(stream.frontier, node) == stream.frontier.end()) stream.frontier.push_back(node);
  }
}

std::string refuse_during_capture(const char* name) {
  std::lock_guard lock(capture_mutex());
  std::string refused;
  for (Capture* each : open_captures()) {
    const bool is_own = each->thread == std::this_thread::get_id();
    if (each->mode == cudaStreamCaptureModeRelaxed || (each->mode == cudaStreamCaptureModeThreadLocal && !is_own)) {
      continue;
    }
    refused = each->origin->name() + " captures, and not in relaxed mode: this call may not be made meanwhile";
    invalidate(*each, std::string(name) + " was called during the capture");
  }
  return refused;
}

void require_no_capture(Stream& stream, const std::string& name) {
  std::lock_guard lock(capture_mutex());
  if (!stream.capture) return;
  invalidate(*stream.capture, name + " was called for " + stream.name());
  throw CallError(cudaErrorStreamCaptureUnsupported, stream.name() + " captures: this call cannot be captured");
}

void begin_capture(const StreamPtr& stream, cudaStreamCaptureMode mode) {
  std::lock_guard lock(capture_mutex());
  if (stream->capture) throw CallError(cudaErrorIllegalState, stream->name() + " captures already");
  auto capture = std::make_shared<Capture>();
  capture->origin = stream.get();
  capture->members = {stream};
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph.device = stream->device().number();
  open_captures().push_back(capture.get());
  stream->frontier.clear();
  stream->capture = std::move(capture);
}

Graph end_capture(Stream& stream) {
  std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) throw CallError(cudaErrorIllegalState, stream.name() + " does not capture");
  if (capture->origin != &stream) {
    const std::string why = "the capture began on " + capture->origin->name() + ", and ends on " + stream.name();
    invalidate(*capture, why);
    throw CallError(cudaErrorStreamCaptureUnmatched, why);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    throw CallError(cudaErrorStreamCaptureWrongThread, "another thread began the capture, and not in relaxed mode");
  }
  const std::size_t joined = count_joined(capture->graph, stream.frontier);
  std::string open;
  for (const StreamPtr& member : capture->members) {
    if (count_joined(capture->graph, member->frontier) > 0 && member.get() != &stream) open += " " + member->name();
    member->capture = nullptr;
    member->frontier.clear();
  }
  std::erase(open_captures(), capture.get());
  if (!capture->invalid.empty()) throw CallError(cudaErrorStreamCaptureInvalidated, capture->invalid);
  if (const std::size_t all = capture->graph.nodes.size(); joined != all) {
    throw CallError(cudaErrorStreamCaptureUnjoined, stream.name() + " does not wait for " +
                                                        std::to_string(all - joined) + " of " + std::to_string(all) +
                                                        " captured nodes (other streams of the capture:" + open +
                                                        "); record an event on them, and make it wait for the event");
  }
  capture->invalid = "the capture has ended";
  return std::move(capture->graph);
}

} // namespace triax::gpu_stand_in
