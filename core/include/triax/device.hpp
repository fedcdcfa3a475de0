// SPDX-License-Identifier: Apache-2.0
// The device of a rank: memory, streams, events, and the data movements that a kernel set does not provide.
//
// Threads: a device belongs to one rank and is used by that rank's main thread. Other threads may use AbortFlag, and
// functions marked "any thread". Ownership: the kernel set creates the device before the plugins start; the core owns
// it and passes it to the kernel set and the communicators. Destroy streams and memory before their device.
// Blocking: only Device::wait(), Stream::ready() and functions that call ready() block; they run the progress loop
// meanwhile. Errors: Error.
//
// A Stream is a FIFO: an item starts when the item before it has finished and all events that the stream waits for have
// fired. On the host, operations of a kernel set run inside the call (after Stream::ready()), and transports append
// resumable state machines (HostTask). On CUDA, operations are enqueued on the native stream.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "triax/export.hpp"
#include "triax/extension.hpp"
#include "triax/tensor.hpp"

namespace triax {

/// The hardware of a device. sim: it takes the time of a model and computes nothing.
enum class DeviceKind { host, cuda, sim };
/// "host"
TRIAX_API std::string_view name_of(DeviceKind kind) noexcept;

/// Time of waits: a steady clock, a moment on it, and the moment in `seconds` from now.
/// @{
using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
TRIAX_API Deadline deadline_in(double seconds);
/// @}

/// Number of an action in the rank's program: the same in plan, trace, log and hang report.
using ActionId = std::uint32_t;
/// No action of a program.
inline constexpr ActionId kNoAction = 0xFFFFFFFFu;

/// An abort and its reason. The flag of a rank is in its device, and every wait checks it. Communicators have one more
/// for each group.
class TRIAX_API AbortFlag {
 public:
  /// Sets the flag; returns true if it was not set. Only the first reason is kept. Any thread.
  bool raise(std::string_view reason) noexcept;
  /// Sequentially consistent, as raise() is: of two threads that each write one flag and then read the other, at least
  /// one sees the other's.
  bool raised() const noexcept { return raised_.load(std::memory_order_seq_cst); }
  /// Empty until raised() is true; does not change after that.
  const std::string& reason() const noexcept;
  /// Throws Error with the reason if raised.
  void check() const;

 private:
  std::atomic<bool> raised_{false};
  std::mutex mutex_; // guards writes of reason_
  std::string reason_;
};

/// State of an Event: a slot of a pool, reused for one generation after another. A generation that has fired stays
/// fired, so a slot can return to its pool as soon as its event has fired.
class TRIAX_API EventState {
 public:
  EventState() = default;
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;
  virtual ~EventState();
  /// Whether generation `generation` has fired. Polls, does not block.
  virtual bool fired(std::uint64_t generation) noexcept = 0;
  /// Why that generation failed, or nullptr. Call it only after the generation has fired.
  virtual const char* failure(std::uint64_t generation) const noexcept = 0;
};

/// Handle of an event; copy it freely. A default-constructed Event is already complete.
class Event {
 public:
  Event() = default;
  Event(EventState* state, std::uint64_t generation) : state_(state), generation_(generation) {}
  /// Whether it has fired. Polls, does not block.
  bool fired() const noexcept { return !state_ || state_->fired(generation_); }
  /// Why it failed, or nullptr. Call it only after it has fired.
  const char* failure() const noexcept { return state_ ? state_->failure(generation_) : nullptr; }
  /// The slot, or nullptr, and its generation.
  /// @{
  EventState* state() const noexcept { return state_; }
  std::uint64_t generation() const noexcept { return generation_; }
  /// @}

 private:
  EventState* state_ = nullptr;
  std::uint64_t generation_ = 0;
};

/// An event of the host: an atomic counter of generations. One thread arms and fires it; fired() may be called by any
/// thread.
class TRIAX_API HostEvent final : public EventState {
 public:
  HostEvent() = default;
  /// Returns the event of the next generation. The previous generation must have fired.
  Event arm();
  /// Fires the armed generation.
  void fire() noexcept;
  /// Fires the event as failed. A wait for it throws Error with this text.
  void fail(std::string_view why) noexcept;
  /// Whether no generation is armed and unfired.
  bool idle() const noexcept { return fired_.load(std::memory_order_acquire) == armed_; }

  bool fired(std::uint64_t generation) noexcept override {
    return fired_.load(std::memory_order_acquire) >= generation;
  }
  const char* failure(std::uint64_t generation) const noexcept override;

 private:
  std::uint64_t armed_ = 0;
  std::atomic<std::uint64_t> fired_{0};
  std::uint64_t failed_ = 0;
  std::string why_;
};

/// The result of a communicator call: its completion event, and the action for which it was posted.
struct Work {
  Event event;
  ActionId action = kNoAction;
};

/// A resumable state machine in the host-side queue of a stream. Its owner keeps it alive until it has finished or was
/// dropped.
class TRIAX_API HostTask {
 public:
  virtual ~HostTask();
  /// Does as much as possible without blocking; returns true when finished. The progress loop calls it repeatedly, on
  /// the rank's main thread. Must not throw: a task that fails makes its Work's event fail and returns true.
  virtual bool advance() noexcept = 0;
  /// The stream was destroyed while the task was queued: advance() will not be called again. A communicator's call
  /// fails its group.
  virtual void dropped() noexcept {}
};

class Device;

/// A queue of work in order. The base class knows its name, its device and its current action.
class TRIAX_API Stream {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream();
  /// Its name in reports, and its device.
  /// @{
  const std::string& name() const noexcept { return name_; }
  Device& device() noexcept { return device_; }
  /// @}
  /// Items that are added later start after `event` has fired. Does not block.
  virtual void wait(const Event& event) = 0;
  /// Returns an event that fires when all work added to the stream so far has finished.
  virtual Event record() = 0;
  /// Appends a host task. Does not block, and does not run it.
  virtual void post(HostTask& task) = 0;
  /// Advances the host-side queue; returns true if an item finished. Called by the progress loop.
  virtual bool advance() noexcept = 0;
  /// Runs the progress loop until all earlier items of the stream have finished; for operations that run inside the
  /// call. Throws Error if an event that the stream waits for has failed, when the rank is aborted, or when the
  /// device's default timeout expires.
  virtual void ready() = 0;
  /// begin() and end() enclose the work of one action, for traces and hang reports. The program owns the labels; they
  /// must outlive the stream.
  /// @{
  void begin(ActionId action, const char* label) noexcept;
  void end(ActionId action) noexcept;
  /// @}
  /// The action that was begun last and has not ended, or kNoAction. Any thread.
  ActionId current() const noexcept { return current_.load(std::memory_order_relaxed); }
  /// cudaStream_t on CUDA; null on the host.
  virtual void* native() noexcept = 0;

 protected:
  /// Adds the stream to the device, whose progress loop advances it; the destructor removes it.
  Stream(std::string name, Device& device);

 private:
  /// Called by begin() and end(), for profilers.
  virtual void on_begin(const char* label) noexcept;
  virtual void on_end() noexcept;

  const std::string name_;
  Device& device_;
  std::atomic<ActionId> current_{kNoAction};
};

/// Where memory is. pinned: on the host, and the device can access it.
enum class MemoryKind { device, host, pinned };

/// A block of memory, aligned to at least 256 bytes, freed by the destructor.
class TRIAX_API Memory {
 public:
  virtual ~Memory();
  /// Start and size of the block.
  /// @{
  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// @}

 protected:
  Memory(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  void* data_;
  std::size_t bytes_;
};

/// Hands out consecutive views of one block, each aligned to 256 bytes. An arena without a block only counts: its views
/// have sizes and no data, which is how a dry run finds the size of the memory. An arena never grows.
class TRIAX_API Arena {
 public:
  static constexpr std::size_t kAlignment = 256;
  /// `bytes`, rounded up to a multiple of kAlignment.
  static std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  /// An arena without a block, which only counts.
  explicit Arena(std::string name);
  Arena(std::string name, std::unique_ptr<Memory> memory);

  /// Throws Error with the arena's name and the sizes if the block is full.
  TensorView tensor(DType dtype, const Shape& shape);
  /// Its name in messages; bytes that views have, and bytes of the block (0 without a block).
  /// @{
  const std::string& name() const noexcept { return name_; }
  std::size_t used() const noexcept { return used_; }
  std::size_t capacity() const noexcept { return memory_ ? memory_->bytes() : 0; }
  /// @}
  /// Start of the block; null without a block.
  void* data() const noexcept { return memory_ ? memory_->data() : nullptr; }

 private:
  std::string name_;
  std::unique_ptr<Memory> memory_;
  std::size_t used_ = 0;
};

/// Something that the progress loop polls: a transport.
class TRIAX_API ProgressSource {
 public:
  virtual ~ProgressSource();
  /// One round. Called by the progress loop, on the thread of the rank.
  virtual void progress() noexcept = 0;
};

/// The device of one rank: memory, streams, data movements, and the progress loop.
class TRIAX_API Device : public Extensible {
 public:
  virtual ~Device();
  /// The kind, and a text for reports.
  /// @{
  virtual DeviceKind kind() const noexcept = 0;
  virtual std::string description() const = 0;
  /// @}

  /// Allocates memory. Throws Error if there is not enough. The device outlives it: freeing memory of a GPU may run the
  /// progress loop.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryKind kind) = 0;
  /// Creates a stream, with a name for reports. The device outlives it.
  virtual std::unique_ptr<Stream> make_stream(std::string name) = 0;

  /// Data movements, in stream order. Sizes must be equal; views may be strided. copy() requires equal types. `host_`
  /// views are host memory; on a GPU they should be pinned.
  /// @{
  virtual void copy(const TensorView& to, const TensorView& from, Stream& stream) = 0;
  virtual void upload(const TensorView& to, const TensorView& host_from, Stream& stream) = 0;
  virtual void download(const TensorView& host_to, const TensorView& from, Stream& stream) = 0;
  virtual void fill(const TensorView& to, double value, Stream& stream) = 0;
  /// @}
  /// Narrowing rounds to nearest, ties to even.
  virtual void convert(const TensorView& to, const TensorView& from, Stream& stream) = 0;
  /// to += from, in the type of `to`. The types must be equal, or `to` f32 and `from` bf16 or f16.
  virtual void add(const TensorView& to, const TensorView& from, Stream& stream) = 0;

  /// One round of the progress loop: advances all host-side queues and polls all progress sources. Returns true if an
  /// item of a queue finished. Transports run only on the thread that calls it.
  bool progress() noexcept;
  /// The source is not owned; remove it before it is destroyed.
  /// @{
  void add_source(ProgressSource& source) { sources_.push_back(&source); }
  void remove_source(ProgressSource& source) noexcept { std::erase(sources_, &source); }
  /// @}

  /// Runs the progress loop until the event has fired. Throws Error if the event failed, when the rank is aborted, or
  /// at the deadline.
  /// @{
  void wait(const Event& event, Deadline deadline);
  void wait(const Work& work, Deadline deadline);
  /// @}

  /// The abort flag of the rank.
  AbortFlag& abort_flag() noexcept { return abort_flag_; }

  /// The default timeout, in seconds, of waits without a deadline (Stream::ready). Default: no timeout.
  /// @{
  void set_default_timeout(double seconds) noexcept { default_timeout_s_ = seconds; }
  double default_timeout() const noexcept { return default_timeout_s_; }
  /// @}

 protected:
  /// The streams that exist, in the order of their creation. All of them were made by this device's make_stream().
  const std::vector<Stream*>& streams() const noexcept { return streams_; }

 private:
  friend class Stream; // adds and removes itself
  void poll_until(const Work& work, Deadline deadline);

  std::vector<Stream*> streams_;
  std::vector<ProgressSource*> sources_;
  AbortFlag abort_flag_;
  double default_timeout_s_ = 1e9;
};

/// The device that a rank needs. New fields are added at the end.
struct DeviceRequest {
  int local_rank = 0;  // number of the rank among the ranks of its machine
  int local_ranks = 1; // ranks of this run on the machine
  double bytes = 0;    // device memory that the rank will allocate; 0: not known yet
};

/// The host device. The progress loop runs the host tasks of its streams; operations run in the calling thread.
TRIAX_API std::unique_ptr<Device> make_host_device();

/// The device of a dry run, which has no memory: allocations return null blocks; data movements are only checked, and
/// waits return at once.
TRIAX_API std::unique_ptr<Device> make_dry_run_device(DeviceKind kind);

} // namespace triax
