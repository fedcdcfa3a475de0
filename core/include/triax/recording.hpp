// A power that a device may have: what is put on its streams is recorded once, and launched again and again at the cost
// of one call. On CUDA: graphs.
//
//   auto* recorder = dynamic_cast<Recorder*>(&device);
//   recorder->begin_recording(stream);
//   ...                                     // puts work on `stream`, and on streams that wait for it
//   const auto step = recorder->end_recording();
//   step->launch(stream);                   // as if all of it had been put there again
//
// While it records nothing runs. Streams wait for events that were recorded meanwhile, and every stream that was led
// away from `stream` is waited for by it before the end. Such an event is not asked; after the end it counts as fired.
// Work that the host moves on (host tasks, host events) cannot be recorded.
//
// Threads: the rank's main thread. Ownership: a recording refers to streams and memory, and goes before them. Blocking:
// never. Errors: Error.
#pragma once

#include <memory>

#include "triax/device.hpp"

namespace triax {

class TRIAX_API Recording {
 public:
  virtual ~Recording();
  /// Puts what was recorded on `stream`, the one it was begun on.
  virtual void launch(Stream& stream) = 0;
};

class TRIAX_API Recorder {
 public:
  virtual ~Recorder();
  virtual void begin_recording(Stream& stream) = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
};

} // namespace triax
