// The rank's device: memory, streams, events, and the few data movements that are not a kernel set's business.
//
// Threads: one device belongs to one rank and is used by that rank's main thread; Interrupt alone may be touched by any
// thread. Ownership: the core has the kernel set make the rank's device before the plugins start, owns it, and hands it
// to the kernel set and the communicators alike; streams and memory must go before their device.
// Blocking: only functions named wait() or ready() block; they pump progress() while they do.
//
// A Stream is a FIFO: an item starts when the one before has finished and every Event it was told to wait for has
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

#include "triax/export.hpp"
#include "triax/tensor.hpp"

namespace triax {

enum class DeviceKind { host, cuda, sim };
TRIAX_API std::string_view name_of(DeviceKind kind) noexcept;

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
TRIAX_API Deadline deadline_in(double seconds);

/// Number of an action in the rank's program; joins plan, trace, log and hang report.
using ActionId = std::uint32_t;
inline constexpr ActionId kNoAction = 0xFFFFFFFFu;

/// The rank's abort flag. Every wait reads it.
class TRIAX_API Interrupt {
 public:
  /// The first reason stays. Any thread.
  void raise(std::string_view reason) noexcept;
  bool raised() const noexcept { return raised_.load(std::memory_order_acquire); }
  std::string reason() const;
  /// Throws Error with the reason if raised.
  void check() const;

 private:
  std::atomic<bool> raised_{false};
  mutable std::mutex mutex_;
  std::string reason_;
};

/// What an Event points to: a slot of some pool, used again for one generation after another. A generation that has
/// fired stays fired, so a slot may go back to its pool as soon as its event has fired.
class TRIAX_API EventState {
 public:
  enum class Class { host, device };
  explicit EventState(Class event_class) : class_(event_class) {}
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;
  virtual ~EventState();
  Class event_class() const noexcept { return class_; }
  /// Whether generation `generation` has fired; polls, never blocks.
  virtual bool fired(std::uint64_t generation) noexcept = 0;
  /// Why that generation failed, or nullptr; asked after it has fired.
  virtual const char* failure(std::uint64_t generation) const noexcept = 0;

 private:
  Class class_;
};

/// A value: copy freely. A default Event is born fired.
class Event {
 public:
  Event() = default;
  Event(EventState* state, std::uint64_t generation) : state_(state), generation_(generation) {}
  bool fired() const noexcept { return !state_ || state_->fired(generation_); }
  const char* failure() const noexcept { return state_ ? state_->failure(generation_) : nullptr; }
  EventState* state() const noexcept { return state_; }
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  EventState* state_ = nullptr;
  std::uint64_t generation_ = 0;
};

/// A host event: an atomic counter of generations. One user arms and fires it; any thread may ask.
class TRIAX_API HostEvent final : public EventState {
 public:
  HostEvent() : EventState(Class::host) {}
  /// The event of the next generation. The one before must have fired.
  Event arm();
  void fire() noexcept;
  /// Fires it as failed; waiting for it throws this text.
  void fail(std::string_view why) noexcept;
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

/// What a communicator call returns: its completion, and the action it was posted for.
struct Work {
  Event event;
  ActionId action = kNoAction;
};

/// A resumable state machine on a stream's host queue. Its owner keeps it alive until it has finished or
/// been dropped.
class TRIAX_API HostTask {
 public:
  virtual ~HostTask();
  /// Goes on as far as it can without blocking; true when finished. Called again and again by the pump, on the rank's
  /// main thread. Must not throw: a failing task fails its Work's event and returns true.
  virtual bool advance() noexcept = 0;
  /// Its stream goes while it is queued: it will not be called again.
  virtual void dropped() noexcept {}
};

class TRIAX_API Stream {
 public:
  virtual ~Stream();
  virtual std::string_view name() const noexcept = 0;
  /// Later items start after `event` has fired. Does not block.
  virtual void wait(const Event& event) = 0;
  /// An event that fires when everything put on the stream so far has finished.
  virtual Event record() = 0;
  /// Appends a host task. Does not block, and does not run it.
  virtual void post(HostTask& task) = 0;
  /// Moves the host queue on; true if anything moved. The pump calls it.
  virtual bool advance() noexcept = 0;
  /// For operations that run inside the call: pumps until everything before has finished. Throws Error if an event
  /// waited for has failed, on the rank's interrupt, and after the device's patience.
  virtual void ready() = 0;
  /// Bracket the work of one action, for trace and hang report. Labels must live for ever (they are the program's).
  virtual void begin(ActionId action, const char* label) noexcept = 0;
  virtual void end(ActionId action) noexcept = 0;
  /// The action begun last and not ended, or kNoAction. Any thread.
  virtual ActionId current() const noexcept = 0;
  /// cudaStream_t on CUDA; null on the host.
  virtual void* native() noexcept = 0;
};

enum class MemoryKind { device, host, pinned };

/// A block of memory, aligned to 256 bytes at least, freed with the object.
class TRIAX_API Memory {
 public:
  virtual ~Memory();
  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 protected:
  Memory(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  void* data_;
  std::size_t bytes_;
};

/// Hands out views of one block, one after another, each aligned to 256 bytes. Without a block it only counts: its
/// views have sizes and no data, which is how memory is planned. Never grows.
class TRIAX_API Arena {
 public:
  static constexpr std::size_t kAlignment = 256;
  static std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  /// A counting arena.
  explicit Arena(std::string name);
  Arena(std::string name, std::unique_ptr<Memory> memory);

  /// Throws Error, naming the arena and the sizes, when the block is full.
  TensorView tensor(DType dtype, const Shape& shape);
  std::size_t used() const noexcept { return used_; }
  std::size_t capacity() const noexcept { return memory_ ? memory_->bytes() : 0; }
  /// The bytes of the block; null for a counting arena.
  void* data() const noexcept { return memory_ ? memory_->data() : nullptr; }

 private:
  std::string name_;
  std::unique_ptr<Memory> memory_;
  std::size_t used_ = 0;
};

/// Something that moves on when polled: a transport.
class TRIAX_API ProgressSource {
 public:
  virtual ~ProgressSource();
  virtual void progress() noexcept = 0;
};

class TRIAX_API Device {
 public:
  virtual ~Device();
  virtual DeviceKind kind() const noexcept = 0;
  virtual std::string description() const = 0;

  virtual std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryKind kind) = 0;
  virtual std::unique_ptr<Stream> make_stream(std::string name) = 0;

  /// Data movements, in stream order. Sizes must be equal; views may be strided. copy keeps the type; `host` views are
  /// host memory and, where the device is not the host, should be pinned.
  virtual void copy(const TensorView& to, const TensorView& from, Stream& stream) = 0;
  virtual void upload(const TensorView& to, const TensorView& host_from, Stream& stream) = 0;
  virtual void download(const TensorView& host_to, const TensorView& from, Stream& stream) = 0;
  virtual void fill(const TensorView& to, double value, Stream& stream) = 0;
  /// Rounds to nearest even when narrowing.
  virtual void convert(const TensorView& to, const TensorView& from, Stream& stream) = 0;
  /// to += from, in the type of `to`; the types must be equal, or f32 and a 16-bit floating type.
  virtual void add(const TensorView& to, const TensorView& from, Stream& stream) = 0;

  /// The pump: moves every stream's host queue and every progress source on; true if anything moved. Transports are
  /// entered by this thread only.
  virtual bool progress() noexcept = 0;
  virtual void add_source(ProgressSource& source) = 0;
  virtual void remove_source(ProgressSource& source) noexcept = 0;

  /// Pumps until the event has fired. Throws Error on its failure, on the rank's interrupt, and at the deadline.
  void wait(const Event& event, Deadline deadline);
  void wait(const Work& work, Deadline deadline);

  Interrupt& interrupt() noexcept { return interrupt_; }

  /// How long waits that are given no deadline (Stream::ready) may last, in seconds; for ever where nobody says.
  void set_patience(double seconds) noexcept { patience_s_ = seconds; }
  double patience() const noexcept { return patience_s_; }

 private:
  Interrupt interrupt_;
  double patience_s_ = 1e9;
};

/// Which device a rank is to get. New fields go to the end.
struct DeviceRequest {
  int local_rank = 0;  // of the rank among those of its machine
  int local_ranks = 1; // ranks of this run on the machine
  double bytes = 0;    // of device memory that the rank will take; 0: not known yet
};

/// The host as a device. Streams run host tasks when pumped; operations run in their caller.
TRIAX_API std::unique_ptr<Device> make_host_device();

/// A device without memory, for planning: allocations give null blocks, data movements and waits do nothing.
TRIAX_API std::unique_ptr<Device> make_plan_device(DeviceKind kind);

} // namespace triax
