// SPDX-License-Identifier: Apache-2.0
// The 64-bit tags by which a send is matched with its receive. Every bit is significant: there are no wildcards.
//
//   kind 2 | group 14 | source 12 | control:    0
//                                 | collective: sequence 20, phase 2, chunk 14
//                                 | transfer:   channel 14, type 3, number 19
//
// Sequence, chunk and number wrap at their number of bits. This is safe: fewer messages are in flight between two
// ranks at a time (TagLimits), and messages with equal tags keep their order.
//
// Threads: any. Ownership: none, values only. Blocking: none. Errors: none; a number above its field is cut off, so the
// caller checks TagLimits (transport.hpp).
#pragma once

#include <cstdint>

#include "triax/tensor.hpp"

namespace triax::p2p {

/// A tag: all its bits are compared.
using Tag = std::uint64_t;

/// Bits of the fields, and how many values a field has.
/// @{
inline constexpr int kGroupBits = 14, kSourceBits = 12, kChannelBits = 14;
inline constexpr int kSequenceBits = 20, kNumberBits = 19;
inline constexpr int kMaxGroups = 1 << kGroupBits, kMaxMembers = 1 << kSourceBits, kMaxChannels = 1 << kChannelBits;
/// @}

/// The purpose of a message.
enum class TagKind : std::uint8_t { control = 1, collective, transfer };

/// Messages of a collective: the opening, with or without data; the data of other members; results.
enum class Phase : std::uint64_t { opening, part, result };

namespace tag_detail {

constexpr Tag field(std::uint64_t value, int bits, int at) noexcept {
  return (value & ((std::uint64_t{1} << bits) - 1)) << at;
}
constexpr std::uint64_t value(Tag tag, int bits, int at) noexcept {
  return (tag >> at) & ((std::uint64_t{1} << bits) - 1);
}
constexpr Tag from(TagKind kind, int group, int source) noexcept {
  return field(static_cast<std::uint64_t>(kind), 2, 62) | field(static_cast<std::uint64_t>(group), kGroupBits, 48) |
         field(static_cast<std::uint64_t>(source), kSourceBits, 36);
}

} // namespace tag_detail

/// The tag of a message of member `source` of a group.
/// @{
constexpr Tag control_tag(int group, int source) noexcept {
  return tag_detail::from(TagKind::control, group, source);
}

constexpr Tag collective_tag(int group, int source, std::uint64_t sequence, Phase phase, std::int64_t chunk) noexcept {
  return tag_detail::from(TagKind::collective, group, source) | tag_detail::field(sequence, kSequenceBits, 16) |
         tag_detail::field(static_cast<std::uint64_t>(phase), 2, 14) |
         tag_detail::field(static_cast<std::uint64_t>(chunk), 14, 0);
}

constexpr Tag transfer_tag(int group, int source, int channel, triax::DType dtype, std::uint64_t number) noexcept {
  return tag_detail::from(TagKind::transfer, group, source) |
         tag_detail::field(static_cast<std::uint64_t>(channel), kChannelBits, 22) |
         tag_detail::field(static_cast<std::uint64_t>(dtype), 3, 19) | tag_detail::field(number, kNumberBits, 0);
}
/// @}
/// The tag of a transfer with another type.
constexpr Tag with_type(Tag transfer, triax::DType dtype) noexcept {
  return (transfer & ~tag_detail::field(7, 3, 19)) | tag_detail::field(static_cast<std::uint64_t>(dtype), 3, 19);
}
/// Mask of a transfer's tag without its type.
inline constexpr Tag kAnyType = ~tag_detail::field(7, 3, 19);
/// Element type in a transfer's tag.
constexpr triax::DType type_of(Tag transfer) noexcept {
  return static_cast<triax::DType>((transfer >> 19) & 7);
}

/// The content of a tag; only the fields of its kind are set. For libraries whose tags have fewer bits.
struct TagFields {
  TagKind kind = TagKind::control;
  int group = 0, source = 0;
  std::uint64_t sequence = 0, chunk = 0; // of a collective
  Phase phase = Phase::opening;
  int channel = 0; // of a transfer
  triax::DType dtype = triax::DType::f32;
  std::uint64_t number = 0;
};
/// Takes a tag apart.
constexpr TagFields fields_of(Tag tag) noexcept {
  using tag_detail::value;
  TagFields out{static_cast<TagKind>(value(tag, 2, 62)), static_cast<int>(value(tag, kGroupBits, 48)),
                static_cast<int>(value(tag, kSourceBits, 36))};
  if (out.kind == TagKind::collective) {
    out.sequence = value(tag, kSequenceBits, 16);
    out.phase = static_cast<Phase>(value(tag, 2, 14));
    out.chunk = value(tag, 14, 0);
  } else if (out.kind == TagKind::transfer) {
    out.channel = static_cast<int>(value(tag, kChannelBits, 22));
    out.dtype = type_of(tag);
    out.number = value(tag, kNumberBits, 0);
  }
  return out;
}

} // namespace triax::p2p
