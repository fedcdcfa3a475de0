// SPDX-License-Identifier: Apache-2.0
#include "control/wire.hpp"

#include <algorithm>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

namespace triax::control {

namespace {

constexpr std::uint64_t kMagic = 0x424F4A2D58495254; // "TRIX-JOB"
constexpr std::size_t kLengthBytes = 4;

class Writer {
 public:
  template <std::integral Number>
  Writer& number(Number value) {
    const auto bits = static_cast<std::make_unsigned_t<Number>>(value);
    for (std::size_t byte = 0; byte < sizeof bits; ++byte)
      bytes_.push_back(static_cast<char>(bits >> (8 * byte) & 0xFF));
    return *this;
  }
  Writer& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  std::string frame() const {
    Writer length;
    length.number(static_cast<std::uint32_t>(bytes_.size()));
    return length.bytes_ + bytes_;
  }

 private:
  std::string bytes_;
};

/// Reads in the order of the Writer. Missing bytes read as 0 or empty, and are remembered.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <std::integral Number>
  void number(Number& value) {
    using Bits = std::make_unsigned_t<Number>;
    Bits bits = 0;
    const std::string_view bytes = take(sizeof bits);
    for (std::size_t byte = 0; byte < bytes.size(); ++byte)
      bits = static_cast<Bits>(bits | static_cast<Bits>(static_cast<unsigned char>(bytes[byte])) << (8 * byte));
    value = static_cast<Number>(bits);
  }
  void text(std::string& value) {
    std::uint32_t size = 0;
    number(size);
    value = take(size);
  }
  bool good() const { return !short_; }
  bool at_end() const { return left_.empty() && !short_; }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) short_ = true;
    if (short_) return {};
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  std::string_view left_;
  bool short_ = false;
};

} // namespace

Message make_message(Message::Kind kind, std::int64_t number, std::string value) {
  Message message;
  message.kind = kind;
  message.number = number;
  message.value = std::move(value);
  return message;
}

namespace {

std::int64_t milliseconds_of(double seconds) {
  constexpr double kMaxSeconds = 1e9;
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, kMaxSeconds) * 1e3);
}

double seconds_of(std::int64_t ms) {
  return static_cast<double>(ms) * 1e-3;
}

} // namespace

// Lowest bit: has seen the failure; next: waits; above them: milliseconds.
std::int64_t encode_beat(bool has_seen_failure, double stalled_s, double waiting_s) {
  const bool waits = waiting_s > 0;
  return milliseconds_of(waits ? waiting_s : stalled_s) * 4 + (waits ? 2 : 0) + (has_seen_failure ? 1 : 0);
}

bool has_seen_failure(const Message& beat) {
  return (beat.number & 1) != 0;
}

double stalled_s(const Message& beat) {
  return (beat.number & 2) != 0 ? 0 : seconds_of(beat.number / 4);
}

double waiting_s(const Message& beat) {
  return (beat.number & 2) != 0 ? seconds_of(beat.number / 4) : 0;
}

// Two lowest bits: the kind; above them: milliseconds.
std::int64_t encode_rank_failed(RankFailureKind why, double since_server_s) {
  return milliseconds_of(since_server_s) * 4 + static_cast<std::int64_t>(why);
}

RankFailureKind failure_kind(const Message& rank_failed) {
  const std::int64_t bits = rank_failed.number & 3;
  return bits <= static_cast<std::int64_t>(RankFailureKind::waiting) ? static_cast<RankFailureKind>(bits)
                                                                     : RankFailureKind::error;
}

double since_server_s(const Message& rank_failed) {
  const std::int64_t milliseconds = rank_failed.number / 4;
  return static_cast<double>(milliseconds) * 1e-3;
}

double beat_interval_s(int world, double silence_s) {
  return std::min(std::max(0.25, world / 4096.0), silence_s / 4);
}

std::string encode(const Hello& hello) {
  return Writer()
      .number(kMagic)
      .number(hello.version)
      .number(hello.rank)
      .number(hello.world)
      .number(hello.pid)
      .text(hello.host)
      .text(hello.token)
      .frame();
}

std::optional<Hello> decode_hello(std::string_view frame) {
  Reader reader(frame);
  std::uint64_t magic = 0;
  Hello hello;
  reader.number(magic);
  reader.number(hello.version);
  if (!reader.good() || magic != kMagic) return std::nullopt;
  if (hello.version != kProtocolVersion) return hello;
  reader.number(hello.rank);
  reader.number(hello.world);
  reader.number(hello.pid);
  reader.text(hello.host);
  reader.text(hello.token);
  return reader.at_end() ? std::optional(hello) : std::nullopt;
}

std::string encode(const Message& message) {
  return Writer()
      .number(static_cast<std::uint8_t>(message.kind))
      .number(message.id)
      .number(message.number)
      .text(message.key)
      .text(message.value)
      .frame();
}

std::optional<Message> decode_message(std::string_view frame) {
  Reader reader(frame);
  Message message;
  std::uint8_t kind = 0;
  reader.number(kind);
  reader.number(message.id);
  reader.number(message.number);
  reader.text(message.key);
  reader.text(message.value);
  if (!reader.at_end() || kind < static_cast<std::uint8_t>(Message::Kind::set) ||
      kind > static_cast<std::uint8_t>(Message::Kind::lost))
    return std::nullopt;
  message.kind = static_cast<Message::Kind>(kind);
  return message;
}

std::size_t message_overhead() {
  return encode(Message{}).size() - kLengthBytes;
}

std::size_t FrameReader::announced() const noexcept {
  if (buffer_.size() - taken_ < kLengthBytes) return 0;
  std::uint32_t length = 0;
  Reader(std::string_view(buffer_).substr(taken_, kLengthBytes)).number(length);
  return length;
}

std::optional<std::string> FrameReader::take() {
  const std::size_t there = buffer_.size() - taken_;
  const std::size_t length = announced();
  if (there < kLengthBytes || length > limit_ || there - kLengthBytes < length) return std::nullopt;
  std::string frame = buffer_.substr(taken_ + kLengthBytes, length);
  taken_ += kLengthBytes + length;
  if (taken_ == buffer_.size() || taken_ >= kMaxHelloBytes) { // moves bytes only rarely when many small frames arrive
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  return frame;
}

} // namespace triax::control
