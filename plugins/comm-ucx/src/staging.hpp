// Device memory's way through pinned memory of the host: places for the messages of each stream's calls, and the copies
// between them and the device, on two streams of this plugin's own, so that both ways go at once. Where UCX carries
// device memory itself: places on the device, and sums there.
//
// Threads: the rank's main thread. Ownership: the transport's; places live as long as it, whatever becomes of calls.
// Blocking: never; a copy's event is polled. Errors: Error, from the device.
//
// A call is a host task: it runs when the producer's work is done, and what stands later on its stream waits for its
// end. So copies wait for nothing but each other, and end in bounded time whatever peers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "triax/device.hpp"

namespace comm_ucx {

using namespace triax;

class Staging {
 public:
  /// Takes `bytes` of pinned memory at once, and of device memory: taking it later may wait for the device.
  Staging(Device& device, std::size_t bytes, std::size_t device_bytes);

  /// Room for the calls of a stream, which run one after the other. Takes more memory when there is not enough.
  std::byte* places(const Stream& stream, std::size_t bytes) { return pinned_.places(device_, stream, bytes); }
  std::byte* device_places(const Stream& stream, std::size_t bytes) {
    return on_device_.places(device_, stream, bytes);
  }
  Stream& stream() noexcept { return *uploads_; }

  Event download(std::byte* place, const std::byte* device, std::size_t bytes);
  Event upload(std::byte* device, const std::byte* place, std::size_t bytes);
  /// On the device, in the order of the uploads.
  Event copy(std::byte* to, const std::byte* from, std::size_t bytes);
  /// out = the sum of the sources in their order, all on the device: the bits of reduce_members(). `sums`: room for as
  /// many elements in the type in which they are added; out may be one of the sources. In the order of the uploads.
  Event sum(DType dtype, std::span<const std::byte* const> sources, std::byte* sums, std::byte* out,
            std::int64_t elements);
  /// bf16 and f16 are added in fp32.
  static DType type_of_sums(DType dtype) noexcept;

 private:
  struct Room {
    const Stream* stream;
    std::byte* begin;
    std::size_t bytes;
  };
  /// Memory of one kind.
  struct Rooms {
    MemoryKind kind;
    std::vector<std::unique_ptr<Memory>> blocks{};
    std::size_t used = 0; // of the last block
    std::vector<Room> rooms{};

    std::byte* places(Device& device, const Stream& stream, std::size_t bytes);
    std::byte* take(Device& device, std::size_t bytes);
  };

  Device& device_;
  Rooms pinned_{MemoryKind::pinned}, on_device_{MemoryKind::device};
  std::unique_ptr<Stream> downloads_, uploads_;
};

} // namespace comm_ucx
