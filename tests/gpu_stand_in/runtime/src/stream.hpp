// SPDX-License-Identifier: Apache-2.0
// Streams: a thread each, which runs the stream's work in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.hpp"
#include "gpu_stand_in/runtime.hpp"

namespace triax::gpu_stand_in {

struct Capture;

// Set when work is done. Events and waits refer to markers.
class Marker {
 public:
  bool is_done() const { return done_.load(std::memory_order_acquire) != 0; }
  void set_done() {
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  void wait() const { done_.wait(0, std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> done_ = 0;
};
using MarkerPtr = std::shared_ptr<Marker>;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(GpuDevice& device, unsigned number, bool blocking);

  // Puts work behind all that the stream has, and returns its marker. Not while the stream captures.
  MarkerPtr push(StreamWork work);
  // The marker of the last work; null if there is none.
  MarkerPtr last() const;
  bool is_idle() const;
  void wait() const;
  // No work comes any more. The thread ends when all work is done.
  void close();

  GpuDevice& device() const { return device_; }
  const std::string& name() const { return name_; }
  bool is_blocking() const { return blocking_; } // orders its work with the legacy default stream

  // Guarded by capture_mutex().
  std::shared_ptr<Capture> capture;
  std::vector<int> frontier; // nodes that the next captured node comes after

 private:
  struct Task {
    StreamWork work;
    MarkerPtr done;
  };
  void run();
  void run_task(const Task& task);
  void delay();

  GpuDevice& device_;
  const std::string name_;
  const bool blocking_;
  std::uint64_t random_; // 0: no delays
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  MarkerPtr last_;
  bool started_ = false, closed_ = false;
};
using StreamPtr = std::shared_ptr<Stream>;

// The stream of a handle: of the table of streams, or the current device's legacy default stream. Throws CallError for
// a handle that is not one, and for the per-thread default stream.
StreamPtr find_stream(cudaStream_t handle);
cudaStream_t create_stream(bool blocking);
void remove_stream(cudaStream_t handle);
// All streams of the device: its default stream, and destroyed streams with work that is not done, included.
std::vector<StreamPtr> streams_of(const GpuDevice& device);

// Puts work on a stream, or in the graph that it captures; orders it with the legacy default stream.
MarkerPtr submit(Stream& stream, StreamWork work);

// Work that waits for a marker.
StreamWork wait_for(MarkerPtr marker, std::string name);

// Runs `work` of `device` to its end; what it throws becomes the sticky error of the device.
void run_to_end(GpuDevice& device, const StreamWork& work);
// Calls `body`, and returns false after an exception, which became the sticky error of the device.
bool run_guarded(GpuDevice& device, const std::string& name, const std::function<void()>& body);

// Waits between calls of a Poll: short at first.
class Backoff {
 public:
  void pause();
  void reset() { count_ = 0; }

 private:
  unsigned count_ = 0;
};

} // namespace triax::gpu_stand_in
