// SPDX-License-Identifier: Apache-2.0
#include "report/event_encoding.hpp"

#include <array>
#include <bit>

namespace triax::report {

namespace {

constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5; // wire types

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    out[byte] = value;
  }
  return out;
}

template <class Number>
std::string little_endian(Number value) {
  std::string out;
  for (std::size_t byte = 0; byte < sizeof value; ++byte) out += static_cast<char>((value >> (8 * byte)) & 0xFF);
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}

std::string tag_of(int field, int wire_type) {
  return varint(static_cast<std::uint64_t>(field << 3 | wire_type));
}

std::string bytes_field(int field, std::string_view bytes) {
  return tag_of(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// Event.wall_time = 1 (double) and Event.step = 2 (int64)
std::string event_head(double wall_time_s, std::int64_t step) {
  std::string out = tag_of(1, kFixed64) + little_endian(std::bit_cast<std::uint64_t>(wall_time_s));
  if (step != 0) out += tag_of(2, kVarint) + varint(static_cast<std::uint64_t>(step));
  return out;
}

/// As TFRecord stores a CRC, so that a CRC of data that contains CRCs is not weak.
std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(static_cast<std::uint32_t>(((crc >> 15) | (crc << 17)) + 0xA282EAD8u));
}

} // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t out = 0xFFFFFFFFu;
  for (const char byte : bytes) out = (out >> 8) ^ kTable[(out ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~out;
}

std::string version_event(double wall_time_s) {
  return event_head(wall_time_s, 0) + bytes_field(3, "brain.Event:2"); // Event.file_version
}

std::string start_event(double wall_time_s, std::int64_t step) {
  constexpr std::uint64_t kStart = 1; // SessionLog.SessionStatus
  const std::string session_log = tag_of(1, kVarint) + varint(kStart);
  return event_head(wall_time_s, step) + bytes_field(7, session_log); // Event.session_log
}

std::string scalar_event(double wall_time_s, std::int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    // Summary.Value: tag = 1, simple_value = 2 (float)
    const auto value = std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value));
    summary += bytes_field(1, bytes_field(1, scalar.tag) + tag_of(2, kFixed32) + little_endian(value));
  }
  return event_head(wall_time_s, step) + bytes_field(5, summary); // Event.summary
}

std::string event_record(std::string_view event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + masked_crc(length) + std::string(event) + masked_crc(event);
}

} // namespace triax::report
