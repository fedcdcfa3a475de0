// SPDX-License-Identifier: Apache-2.0
// Handles of streams, the legacy default streams, and how work reaches a stream.
#include <map>

#include "capture.hpp"
#include "handles.hpp"
#include "stream.hpp"

namespace triax::gpu_stand_in {

namespace {

HandleTable<cudaStream_t, Stream>& table() {
  static auto& streams = *new HandleTable<cudaStream_t, Stream>("stream");
  return streams;
}

// Destroyed streams whose work is not done: calls that wait for the device wait for them, too.
struct ClosingStreams {
  std::mutex mutex;
  std::vector<std::weak_ptr<Stream>> streams; // their threads keep them
};
ClosingStreams& closing_streams() {
  static auto& streams = *new ClosingStreams;
  return streams;
}

void close(const StreamPtr& stream) {
  ClosingStreams& closing = closing_streams();
  std::lock_guard lock(closing.mutex);
  std::erase_if(closing.streams, [](const auto& each) { return each.expired(); });
  closing.streams.push_back(stream);
  stream->close();
}

std::vector<StreamPtr> all_streams() {
  std::vector<StreamPtr> streams = table().all();
  ClosingStreams& closing = closing_streams();
  std::lock_guard lock(closing.mutex);
  for (const auto& each : closing.streams) {
    if (StreamPtr stream = each.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

struct DefaultStreams {
  std::mutex mutex;
  std::map<int, StreamPtr> by_device;
};
DefaultStreams& default_streams() {
  static auto& streams = *new DefaultStreams;
  return streams;
}

StreamPtr default_stream(int number) {
  DefaultStreams& all = default_streams();
  GpuDevice& owner = device(number);
  std::lock_guard lock(all.mutex);
  StreamPtr& stream = all.by_device[number];
  if (!stream) stream = std::make_shared<Stream>(owner, 0, false);
  return stream;
}

StreamPtr find_default_stream(int number) {
  DefaultStreams& all = default_streams();
  std::lock_guard lock(all.mutex);
  const auto found = all.by_device.find(number);
  return found == all.by_device.end() ? nullptr : found->second;
}

void wait_in(Stream& stream, const MarkerPtr& marker, const char* name) {
  if (marker && !marker->is_done()) stream.push(wait_for(marker, name));
}

// The legacy default stream waits for all blocking streams, and they wait for it.
void order_with_default_stream(Stream& stream) {
  const StreamPtr legacy = find_default_stream(stream.device().number());
  if (!legacy) return;
  if (legacy.get() != &stream) {
    if (stream.is_blocking()) wait_in(stream, legacy->last(), "wait for the legacy default stream");
    return;
  }
  for (const StreamPtr& each : all_streams()) {
    if (!each->is_blocking() || &each->device() != &stream.device()) continue;
    if (each->capture) {
      invalidate(*each->capture, "work was put on the legacy default stream, which waits for blocking streams");
      throw CallError(cudaErrorStreamCaptureImplicit,
                      "the legacy default stream waits for " + each->name() +
                          ", which captures; make that stream with cudaStreamNonBlocking");
    }
    wait_in(stream, each->last(), "wait for blocking streams");
  }
}

} // namespace

StreamPtr find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return default_stream(current_device());
  if (handle == cudaStreamPerThread) {
    throw CallError(cudaErrorNotSupported, "the stand-in does not know the per-thread default stream");
  }
  return table().get(handle);
}

cudaStream_t create_stream(bool blocking) {
  static std::atomic<unsigned> number = 0;
  return table().add(std::make_shared<Stream>(device(current_device()), ++number, blocking));
}

void remove_stream(cudaStream_t handle) {
  {
    std::lock_guard lock(capture_mutex());
    const StreamPtr stream = table().get(handle);
    if (stream->capture) {
      invalidate(*stream->capture, stream->name() + " was destroyed while it captured");
      throw CallError(cudaErrorStreamCaptureUnsupported, stream->name() + " captures; end the capture first");
    }
  }
  close(table().take(handle));
}

std::vector<StreamPtr> streams_of(const GpuDevice& owner) {
  std::vector<StreamPtr> streams = all_streams();
  std::erase_if(streams, [&](const StreamPtr& each) { return &each->device() != &owner; });
  if (StreamPtr legacy = find_default_stream(owner.number())) streams.push_back(legacy);
  return streams;
}

MarkerPtr submit(Stream& stream, StreamWork work) {
  std::lock_guard lock(capture_mutex());
  if (stream.capture) {
    capture_work(stream, std::move(work));
    return nullptr;
  }
  order_with_default_stream(stream);
  return stream.push(std::move(work));
}

cudaError_t enqueue(cudaStream_t stream, StreamWork work) {
  const std::string name = work.name;
  return call(name.c_str(), Check::kSticky, [&] { submit(*find_stream(stream), std::move(work)); });
}

cudaError_t enqueue(cudaStream_t stream, std::string name, std::function<void()> work) {
  return enqueue(stream, StreamWork{std::move(name), [work = std::move(work)]() -> Poll {
                                      work();
                                      return nullptr;
                                    }});
}

std::optional<int> device_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return current_device();
  const StreamPtr found = table().find(stream);
  return found ? std::optional(found->device().number()) : std::nullopt;
}

bool is_capturing(cudaStream_t stream) {
  const StreamPtr found = stream == nullptr ? nullptr : table().find(stream);
  std::lock_guard lock(capture_mutex());
  return found && found->capture;
}

} // namespace triax::gpu_stand_in
