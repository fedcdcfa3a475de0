// SPDX-License-Identifier: Apache-2.0
// Optional device interface: captures the work of streams once, to launch it repeatedly with a single call. On CUDA, a
// recording is a CUDA graph.
//
//   auto* recorder = find_extension<Recorder>(device);
//   recorder->begin_recording(stream);
//   ...                                     // enqueues work on `stream`, and on streams that wait for it
//   const auto step = recorder->end_recording();
//   step->launch(stream);                   // runs all of that work again
//
// Captured work does not run. During capture, streams may wait only for events that were recorded during the same
// capture. Every stream that started to wait for `stream` must be joined again: before the end, `stream` waits for it.
// The state of an event of the capture cannot be queried before the end; after the end it counts as fired. Work that
// the host advances (host tasks, host events) cannot be captured.
//
// Threads: the rank's main thread. Ownership: a recording refers to streams and memory; destroy it before them.
// Blocking: never. Errors: Error.
#pragma once

#include <memory>

#include "triax/device.hpp"

namespace triax {

/// The captured work of a stream.
class TRIAX_API Recording {
 public:
  virtual ~Recording();
  /// Enqueues the captured work on `stream`, which must be the stream of begin_recording().
  virtual void launch(Stream& stream) = 0;
};

/// Optional interface of devices that capture the work of a stream.
class TRIAX_API Recorder {
 public:
  static constexpr std::string_view kExtension = "triax.recorder";
  virtual ~Recorder(); // out of line, so that its type_info exists once, in libtriax_core
  /// Begins and ends a capture. Until the end, work that is added to the stream is captured and does not run.
  /// @{
  virtual void begin_recording(Stream& stream) = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
  /// @}
};

} // namespace triax
