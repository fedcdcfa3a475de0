// One message between device memory and members, in pieces through two places in pinned memory: while one piece is on
// the wire, the next is copied.
//
// Threads: the rank's main thread. Ownership: the call's that moves it on; the places are the staging's. Blocking:
// none, it is a state.
//
// Pieces have one tag, and UCX keeps the order of equal tags. All are whole but the last, which is shorter, and may be
// empty: so both sides know their number from the bytes alone, and a message of another length shows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tags.hpp"
#include "transport.hpp"

namespace comm_ucx {

struct Flow {
  static constexpr int kPlaces = 2;

  std::byte* device = nullptr;
  std::size_t bytes = 0, piece = 1;
  std::byte* places = nullptr;
  Tag tag = 0;
  /// Of member `first + i` at piece k: requests[k % 2 * stride + i]; those between first and last, but for `own`.
  Request* requests = nullptr;
  int stride = 1, first = 0, last = 0, own = -1;

  std::int64_t copies = 0, posts = 0; // begun so far, in pieces
  Event copied[kPlaces];

  /// What its places take.
  static std::size_t room(std::size_t bytes, std::size_t piece) {
    return Arena::aligned(std::min(bytes, piece)) * (bytes < piece ? 1 : kPlaces);
  }

  std::int64_t pieces() const noexcept { return static_cast<std::int64_t>(bytes / piece) + 1; }
  std::size_t begin_of(std::int64_t index) const noexcept { return static_cast<std::size_t>(index) * piece; }
  std::size_t bytes_of(std::int64_t index) const noexcept { return std::min(piece, bytes - begin_of(index)); }
  std::byte* place(std::int64_t index) const noexcept {
    return places + static_cast<std::size_t>(index % kPlaces) * Arena::aligned(piece);
  }
  Event& copy_of(std::int64_t index) noexcept { return copied[index % kPlaces]; }
  Request& request(std::int64_t index, int member) noexcept {
    return requests[index % kPlaces * stride + (member - first)];
  }
  bool open(std::int64_t index) noexcept {
    for (int member = first; member <= last; ++member)
      if (member != own && request(index, member).open()) return true;
    return false;
  }
};

} // namespace comm_ucx
