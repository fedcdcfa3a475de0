// SPDX-License-Identifier: Apache-2.0
// Staging of device memory: pinned host buffers for the messages of each stream's calls, and copies between them and
// the device on two separate streams, one per direction, so that both directions run at once. If the library transfers
// device memory directly: buffers on the device, and sums there.
//
// Ownership: owned by the transport; buffers live as long as it does. Blocking: none; the events of copies are polled.
// Errors: Error, from the device.
//
// A call is a host task: it runs when the earlier work on its stream is complete, and later work on the stream waits
// for its end. So copies wait only for other copies, and complete in bounded time whatever peers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "triax/device.hpp"

namespace triax::p2p {

class Staging {
 public:
  /// Allocates `bytes` of pinned memory and `device_bytes` of device memory at once; later allocations may synchronise.
  Staging(Device& device, std::string_view plugin, std::size_t bytes, std::size_t device_bytes);

  /// Buffers for the calls of a stream, which run one after another. Allocates more if there is not enough.
  std::byte* buffers(const Stream& stream, std::size_t bytes) { return pinned_.buffers(device_, stream, bytes); }
  std::byte* device_buffers(const Stream& stream, std::size_t bytes) {
    return on_device_.buffers(device_, stream, bytes);
  }
  Stream& stream() noexcept { return *uploads_; }

  Event download(std::byte* buffer, const std::byte* device, std::size_t bytes);
  Event upload(std::byte* device, const std::byte* buffer, std::size_t bytes);
  /// Copies on the device, in order with the uploads.
  Event copy(std::byte* to, const std::byte* from, std::size_t bytes);
  /// out = the sum of the sources in their order, all on the device, with the bits of reduce_members(). `sums` has
  /// space for as many elements of type_of_sums(); out may be one of the sources. In order with the uploads.
  Event sum(DType dtype, std::span<const std::byte* const> sources, std::byte* sums, std::byte* out,
            std::int64_t elements);
  /// fp32 for bf16 and f16, else the type itself.
  static DType type_of_sums(DType dtype) noexcept;

 private:
  struct Slot {
    const Stream* stream;
    std::byte* begin;
    std::size_t bytes;
  };
  /// Memory of one kind.
  struct Pool {
    MemoryKind kind;
    std::vector<std::unique_ptr<Memory>> blocks{};
    std::size_t used = 0; // of the last block
    std::vector<Slot> slots{};

    std::byte* buffers(Device& device, const Stream& stream, std::size_t bytes);
    std::byte* take(Device& device, std::size_t bytes);
  };

  Device& device_;
  Pool pinned_{MemoryKind::pinned}, on_device_{MemoryKind::device};
  std::unique_ptr<Stream> downloads_, uploads_;
};

} // namespace triax::p2p
