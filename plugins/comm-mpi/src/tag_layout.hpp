// SPDX-License-Identifier: Apache-2.0
// Packs p2p tags into the bits of an MPI tag: 31 bits with Open MPI's usual transports, 23 with its UCX transport.
//
//   31 bits: kind 2 | group 9 | collective: sequence 17, phase 2, chunk 1 | transfer: channel 4, type 3, number 13
//   23 bits: kind 2 | group 5 | collective: sequence 13, phase 2, chunk 1 | transfer: channel 4, type 3, number  9
//
// The source is not part of the tag, because MPI matches it separately. Sequence, chunk and number keep only the lowest
// bits of the p2p tag's. Two messages that may be posted in a different order than their receives (on different
// streams) must not have equal tags. Their tags differ, because fewer calls of a group are in flight than limits()
// allows, and at most 2 chunks of a collective (Plan::kDepth). Messages that are posted in the order of their receives
// may have equal tags, because MPI keeps their order.
#pragma once

#include <algorithm>
#include <triax/p2p/transport.hpp>

namespace triax::comm_mpi {

class TagLayout {
 public:
  static constexpr int kMinBits = 23, kChannelBits = 4; // the core uses channel 0 only

  /// `bits`: at least kMinBits.
  explicit constexpr TagLayout(int bits) noexcept
      : group_bits_(bits >= 31 ? 9 : 5), rest_bits_(std::min(bits, 31) - 2 - group_bits_) {}

  constexpr p2p::TagLimits limits() const noexcept {
    return {.groups = 1 << group_bits_,
            .channels = 1 << kChannelBits,
            .exchanges = 1 << number_bits(),
            .collectives = 1 << (rest_bits_ - 3)};
  }
  /// Bits of a transfer's number.
  constexpr int number_bits() const noexcept { return rest_bits_ - kChannelBits - 3; }

  constexpr int pack(p2p::Tag tag) const noexcept {
    const p2p::TagFields fields = p2p::fields_of(tag);
    int rest = 0;
    if (fields.kind == p2p::TagKind::collective) {
      rest = below(fields.sequence, rest_bits_ - 3) << 3 | static_cast<int>(fields.phase) << 1 | below(fields.chunk, 1);
    } else if (fields.kind == p2p::TagKind::transfer) {
      rest = (static_cast<int>(fields.channel) << 3 | static_cast<int>(fields.dtype)) << number_bits() |
             below(fields.number, number_bits());
    }
    return (static_cast<int>(fields.kind) << group_bits_ | fields.group) << rest_bits_ | rest;
  }

 private:
  static constexpr int below(std::uint64_t value, int bits) noexcept {
    return static_cast<int>(value & ((std::uint64_t{1} << bits) - 1));
  }

  int group_bits_, rest_bits_;
};

} // namespace triax::comm_mpi
