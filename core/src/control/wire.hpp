// SPDX-License-Identifier: Apache-2.0
// What ranks and the server of their job send to each other: frames, and the messages in them.
//
// Threads: values; a FrameReader is used by one thread at a time. Ownership: values. Blocking: never. Errors: none;
// what is no message is told as such, whoever sent it.
//
// A frame is its length (4 bytes) and that many bytes; numbers are little-endian, texts are their length and bytes. A
// connection begins with a Hello. Its first 12 bytes, a magic number and the version, are the same in every version;
// what follows belongs to that version alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::control {

inline constexpr std::uint32_t kProtocolVersion = 2;
inline constexpr std::size_t kMaxHelloBytes = 1024;     // of a stranger
inline constexpr std::size_t kMaxFrameBytes = 16 << 20; // of a rank or the server

/// A rank's first words. A hello of another version has only its version.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  int rank = 0, world = 1, pid = 0;
  std::string host, token;
};

struct Message {
  enum class Kind : std::uint8_t {
    // From a rank. Requests, each answered once, under its id:
    set = 1, // key, value: done
    get,     // key: value, when there is one
    add,     // key, number: number
    barrier, // key: done, when all are there
    tell,    // key: topic, value: text: done
    forget,  // the get or barrier of that id: missing, unless it has been answered
    // From a rank, without id:
    gave_up, // key: place, value: error, number: encode_gave_up()
    // From both:
    beat,    // of a rank: value: place; number: encode_beat(). Answered with a beat
    goodbye, // answered with goodbye, after all that came before
    // From the server:
    welcome, // answers a hello
    refused, // value: why. Without id: answers a hello
    done,
    value,   // value
    number,  // number
    missing, // value: who
    stop,    // number: signal
    failed,  // number: rank, value: its error
    lost,    // number: rank, value: how
  };
  Kind kind = Kind::beat;
  std::uint64_t id = 0;
  std::int64_t number = 0;
  std::string key, value;
};

enum class GaveUp : std::uint8_t {
  error,
  stuck,   // the rank's main thread does not return from a call
  waiting, // a wait for other ranks timed out
};
/// The number of a rank's gave_up: why, and for how long it has not heard the server.
std::int64_t encode_gave_up(GaveUp why, double unheard_s);
GaveUp gave_up_why(const Message& gave_up);
double unheard_s(const Message& gave_up);

/// The number of a rank's beat: whether it knows of the failure, and for how long it has made no progress.
std::int64_t encode_beat(bool knows, double stalled_s);
bool knows_of_failure(const Message& beat);
double stalled_s(const Message& beat);

/// Seconds between two beats of a rank: often, so that the place of a rank that is lost is known; more often to a
/// server that may be silent for little time; and no more than 4096 a second from all ranks together.
double beat_interval_s(int world, double silence_s);

Message make_message(Message::Kind kind, std::int64_t number = 0, std::string value = {});

/// As a frame: with its length.
std::string encode(const Hello& hello);
std::string encode(const Message& message);
/// Of a frame without its length. Nothing: these bytes are no hello, or no message.
std::optional<Hello> decode_hello(std::string_view frame);
std::optional<Message> decode_message(std::string_view frame);
/// The bytes of a message without its key and value.
std::size_t message_overhead();

/// Cuts a stream of bytes into frames. Holds what has arrived, never more because of a length that was announced.
class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}
  /// Of the frames that follow.
  void set_limit(std::size_t bytes) noexcept { limit_ = bytes; }
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next frame, if it is there whole.
  std::optional<std::string> take();
  /// The next frame would be longer than the limit: the stream cannot be read on.
  bool too_long() const noexcept { return announced() > limit_; }

 private:
  std::size_t announced() const noexcept; // bytes of the next frame; 0 while unknown

  std::size_t limit_;
  std::string buffer_;
  std::size_t taken_ = 0; // bytes of buffer_
};

} // namespace triax::control
