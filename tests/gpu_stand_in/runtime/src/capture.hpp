// SPDX-License-Identifier: Apache-2.0
// Graphs, and their capture from streams.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "stream.hpp"

namespace triax::gpu_stand_in {

struct GraphNode {
  StreamWork work;
  std::vector<int> after; // numbers of nodes
};

struct Graph {
  std::vector<GraphNode> nodes;
  int device = 0;
};

struct Capture {
  Graph graph;
  Stream* origin = nullptr;
  std::set<StreamPtr> members;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  std::string invalid; // why it cannot become a graph; empty: it can
};

// Guards captures and what streams and events have of them.
std::mutex& capture_mutex();

// The following need capture_mutex().
// Adds a node behind the stream's frontier.
void capture_work(Stream& stream, StreamWork work);
// Makes the stream part of `capture`, behind `frontier`. Throws CallError if it captures something else.
void join_capture(Stream& stream, const std::shared_ptr<Capture>& capture, const std::vector<int>& frontier);
// Notes why the capture cannot become a graph; cudaStreamEndCapture() says so.
void invalidate(Capture& capture, const std::string& why);

// The following take capture_mutex().
void begin_capture(const StreamPtr& stream, cudaStreamCaptureMode mode);
Graph end_capture(Stream& stream);
// Why this thread may not call `name`, which could wait for captured work, or empty: nothing captures, or in relaxed
// mode. Invalidates the captures in question.
std::string refuse_during_capture(const char* name);
// Throws CallError if the stream captures, and invalidates the capture.
void require_no_capture(Stream& stream, const std::string& name);

// A launch of a graph: nodes start when those before them are done, in an order that the seed chooses.
StreamWork graph_work(std::shared_ptr<const Graph> graph);

} // namespace triax::gpu_stand_in
