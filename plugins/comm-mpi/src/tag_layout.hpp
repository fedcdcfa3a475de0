// SPDX-License-Identifier: Apache-2.0
// p2p tags in the few bits of an MPI tag: 31 with Open MPI's usual transports, 23 with its UCX.
//
//   31 bits: kind 2 | group 9 | collective: sequence 17, phase 2, chunk 1  | transfer: channel 10, type 3, number 7
//   23 bits: kind 2 | group 5 | collective: sequence 13, phase 2, chunk 1  | transfer: channel  8, type 3, number 5
//
// The source is not in it: MPI matches it apart. Sequence, chunk and number are the lowest bits of the p2p tag's. That
// is safe, because MPI keeps the order of messages with equal source and tag; the bits that are left tell apart what
// different streams post at a time.
#pragma once

#include <algorithm>
#include <triax/p2p/transport.hpp>

namespace triax::comm_mpi {

class TagLayout {
 public:
  static constexpr int kMinBits = 23;

  /// `bits`: at least kMinBits.
  explicit constexpr TagLayout(int bits) noexcept
      : group_bits_(bits >= 31 ? 9 : 5),
        rest_bits_(std::min(bits, 31) - 2 - group_bits_),
        channel_bits_(rest_bits_ / 2) {}

  constexpr p2p::TagLimits limits() const noexcept {
    return {.groups = 1 << group_bits_, .channels = 1 << channel_bits_};
  }

  constexpr int pack(p2p::Tag tag) const noexcept {
    const p2p::TagFields fields = p2p::fields_of(tag);
    int rest = 0;
    if (fields.kind == p2p::TagKind::collective) {
      rest = below(fields.sequence, rest_bits_ - 3) << 3 | static_cast<int>(fields.phase) << 1 | below(fields.chunk, 1);
    } else if (fields.kind == p2p::TagKind::transfer) {
      const int number_bits = rest_bits_ - channel_bits_ - 3;
      rest = (static_cast<int>(fields.channel) << 3 | static_cast<int>(fields.dtype)) << number_bits |
             below(fields.number, number_bits);
    }
    return (static_cast<int>(fields.kind) << group_bits_ | fields.group) << rest_bits_ | rest;
  }

 private:
  static constexpr int below(std::uint64_t value, int bits) noexcept {
    return static_cast<int>(value & ((std::uint64_t{1} << bits) - 1));
  }

  int group_bits_, rest_bits_, channel_bits_;
};

} // namespace triax::comm_mpi
