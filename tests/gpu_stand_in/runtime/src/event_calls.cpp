// SPDX-License-Identifier: Apache-2.0
// CUDA calls: events.
#include <chrono>

#include "capture.hpp"
#include "errors.hpp"
#include "handles.hpp"

namespace triax::gpu_stand_in {

namespace {

struct Event {
  int device = 0;
  bool timing = true;
  std::mutex mutex;
  bool recorded = false;
  MarkerPtr marker{}; // of the last record
  std::weak_ptr<Capture> capture;
  bool captured = false; // the last record was captured
  std::vector<int> frontier;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

HandleTable<cudaEvent_t, Event>& events() {
  static auto& table = *new HandleTable<cudaEvent_t, Event>("event");
  return table;
}

cudaError_t make_event(const char* name, cudaEvent_t* event, unsigned flags) {
  return call(name, Check::kSticky, [&] {
    constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
    if ((flags & ~kKnown) != 0) {
      throw CallError(cudaErrorNotSupported, "the stand-in does not know flags " + std::to_string(flags));
    }
    auto made = std::make_shared<Event>();
    made->device = current_device();
    made->timing = (flags & cudaEventDisableTiming) == 0;
    *event = events().add(std::move(made));
  });
}

// Throws CallError if the event cannot be waited for by the host. A captured event is not one of work that runs: to
// query or to synchronize it invalidates the capture (CUDA Programming Guide, "Prohibited and Unhandled Operations" and
// "Invalidation").
MarkerPtr marker_of(Event& event, const std::string& call) {
  std::lock_guard lock(event.mutex);
  if (!event.recorded) {
    throw CallError(cudaErrorInvalidValue, "the event was never recorded: CUDA does not wait then");
  }
  if (event.captured) {
    std::lock_guard capture_lock(capture_mutex());
    if (const auto capture = event.capture.lock()) invalidate(*capture, call + " was called for a captured event");
    throw CallError(cudaErrorCapturedEvent, "the event was last recorded in a capture");
  }
  return event.marker;
}

void record(Event& event, Stream& stream) {
  if (event.device != stream.device().number()) {
    throw CallError(cudaErrorInvalidResourceHandle, "the event is GPU " + std::to_string(event.device) + "'s, and " +
                                                        stream.name() + " is GPU " +
                                                        std::to_string(stream.device().number()) + "'s");
  }
  std::lock_guard event_lock(event.mutex);
  {
    std::lock_guard lock(capture_mutex());
    event.captured = stream.capture != nullptr;
    if (event.captured) {
      if (!stream.capture->invalid.empty()) throw CallError(cudaErrorStreamCaptureInvalidated, stream.capture->invalid);
      event.capture = stream.capture;
      event.frontier = stream.frontier;
      event.recorded = true;
      return;
    }
  }
  auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  event.time = time;
  event.marker = submit(stream, {"cudaEventRecord", [time]() -> Poll {
                                   *time = std::chrono::steady_clock::now();
                                   return nullptr;
                                 }});
  event.recorded = true;
}

void wait_captured(Event& event, Stream& stream) {
  const std::shared_ptr<Capture> capture = event.capture.lock();
  if (!capture) throw CallError(cudaErrorCapturedEvent, "the capture in which the event was recorded has ended");
  if (!capture->invalid.empty()) throw CallError(cudaErrorStreamCaptureInvalidated, capture->invalid);
  if (capture->graph.device != stream.device().number()) {
    throw CallError(cudaErrorNotSupported, "the stand-in does not know graphs of several devices");
  }
  join_capture(stream, capture, event.frontier);
}

void wait(Event& event, Stream& stream) {
  std::lock_guard event_lock(event.mutex);
  if (!event.recorded) {
    throw CallError(cudaErrorInvalidValue, "the event was never recorded: CUDA does not wait then");
  }
  {
    std::lock_guard lock(capture_mutex());
    if (event.captured) return wait_captured(event, stream);
    if (stream.capture) {
      const std::string why = stream.name() + " captures, and waits for an event of work that is not captured";
      invalidate(*stream.capture, why);
      throw CallError(cudaErrorStreamCaptureIsolation, why);
    }
  }
  if (!event.marker->is_done()) submit(stream, wait_for(event.marker, "cudaStreamWaitEvent"));
}

void throw_sticky(const Event& event) {
  if (const cudaError_t sticky = sticky_error(event.device); sticky != cudaSuccess) throw CallError(sticky);
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make_event("cudaEventCreate", event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", Check::kNone, [&] { events().take(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", Check::kSticky, [&] { record(*events().get(event), *find_stream(stream)); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call("cudaStreamWaitEvent", Check::kSticky, [&] {
    if (flags != 0) throw CallError(cudaErrorNotSupported, "the stand-in knows no flags of waits");
    wait(*events().get(event), *find_stream(stream));
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return query("cudaEventQuery", [&] {
    const std::shared_ptr<Event> event = events().get(handle);
    if (!marker_of(*event, "cudaEventQuery")->is_done()) return false;
    throw_sticky(*event);
    return true;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call("cudaEventSynchronize", Check::kCapture, [&] {
    const std::shared_ptr<Event> event = events().get(handle);
    marker_of(*event, "cudaEventSynchronize")->wait();
    throw_sticky(*event);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call("cudaEventElapsedTime", Check::kCapture, [&] {
    const std::shared_ptr<Event> both[] = {events().get(begin), events().get(end)};
    for (const auto& event : both) {
      if (!event->timing) throw CallError(cudaErrorInvalidResourceHandle, "the event has cudaEventDisableTiming");
      if (!marker_of(*event, "cudaEventElapsedTime")->is_done()) throw CallError(cudaErrorNotReady);
    }
    *milliseconds = std::chrono::duration<float, std::milli>(*both[1]->time - *both[0]->time).count();
  });
}

} // extern "C"
