// SPDX-License-Identifier: Apache-2.0
// A staged message between device memory and members, in pieces through two buffers in pinned memory: while one piece
// is sent, the next is copied.
//
// Ownership: the call that advances it; the buffers belong to the staging.
//
// All pieces have the same tag, and the library keeps the order of messages with equal tags. All pieces but the last
// have full size; the last is shorter, and may be empty. So both sides know the number of pieces from the number of
// bytes, and a message of another length is detected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "triax/p2p/tags.hpp"
#include "triax/p2p/transport.hpp"

namespace triax::p2p {

struct StagedMessage {
  static constexpr int kBuffers = 2;

  std::byte* device = nullptr;
  std::size_t bytes = 0, piece = 1;
  std::byte* buffers = nullptr;
  Tag tag = 0;
  /// The request of member `first + i` at piece k is requests[k % 2 * stride + i], for members from first to last
  /// except `own`.
  Request* requests = nullptr;
  int stride = 1, first = 0, last = 0, own = -1;

  std::int64_t copies = 0, posts = 0; // pieces started so far
  Event copied[kBuffers];

  /// Bytes that its buffers need.
  static std::size_t staging_bytes(std::size_t bytes, std::size_t piece) {
    return Arena::aligned(std::min(bytes, piece)) * (bytes < piece ? 1 : kBuffers);
  }

  std::int64_t pieces() const noexcept { return static_cast<std::int64_t>(bytes / piece) + 1; }
  std::size_t begin_of(std::int64_t index) const noexcept { return static_cast<std::size_t>(index) * piece; }
  std::size_t bytes_of(std::int64_t index) const noexcept { return std::min(piece, bytes - begin_of(index)); }
  std::byte* buffer(std::int64_t index) const noexcept {
    return buffers + static_cast<std::size_t>(index % kBuffers) * Arena::aligned(piece);
  }
  Event& copy_of(std::int64_t index) noexcept { return copied[index % kBuffers]; }
  Request& request(std::int64_t index, int member) noexcept {
    return requests[index % kBuffers * stride + (member - first)];
  }
  bool open(std::int64_t index) noexcept {
    for (int member = first; member <= last; ++member)
      if (member != own && request(index, member).open()) return true;
    return false;
  }
};

} // namespace triax::p2p
