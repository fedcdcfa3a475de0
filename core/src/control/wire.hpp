// SPDX-License-Identifier: Apache-2.0
// Protocol between ranks and the job server: frames, and the messages in them.
//
// Threads: values; one thread at a time uses a FrameReader. Errors: none; invalid input decodes to nothing, whichever
// peer sent it.
//
// A frame is its length (4 bytes) and that many bytes. Numbers are little-endian; strings are their length and bytes. A
// connection begins with a Hello. Its first 12 bytes, a magic number and the version, are the same in every version;
// the rest depends on the version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::control {

inline constexpr std::uint32_t kProtocolVersion = 3;
inline constexpr std::size_t kMaxHelloBytes = 1024;     // before the hello is accepted
inline constexpr std::size_t kMaxFrameBytes = 16 << 20; // of a rank or the server

/// The first message of a rank. A hello of another version has only its version.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  int rank = 0, world = 1, pid = 0;
  std::string host, token;
};

struct Message {
  enum class Kind : std::uint8_t {
    // From a rank: requests. Each has one answer with the same id (after the arrow).
    set = 1,        // key, value -> done
    get,            // key -> value, once the key exists
    add,            // key, number -> number
    barrier,        // key -> done, once all ranks are in it
    worker_message, // key: topic, value: text -> done
    forget,         // cancels the get or barrier with this id -> missing, unless already answered
    // From a rank, without id:
    rank_failed, // key: position, value: error, number: encode_rank_failed()
    // From both:
    beat,    // from a rank: value: position, number: encode_beat(); answered with a beat
    goodbye, // answered with goodbye, after all earlier messages
    // From the server:
    welcome, // answers a hello
    refused, // value: reason; without id: answers a hello
    done,
    value,   // value
    number,  // number
    missing, // value: the missing ranks
    stop,    // number: signal
    failed,  // number: rank, value: error
    lost,    // number: rank, value: reason
  };
  Kind kind = Kind::beat;
  std::uint64_t id = 0;
  std::int64_t number = 0;
  std::string key, value;
};

enum class RankFailureKind : std::uint8_t {
  error,
  stuck,   // the rank's main thread has not returned from a call
  waiting, // a wait for other ranks timed out
};
/// `number` of a rank_failed message: the kind, and the time since the rank last heard the server.
std::int64_t encode_rank_failed(RankFailureKind why, double since_server_s);
RankFailureKind failure_kind(const Message& rank_failed);
double since_server_s(const Message& rank_failed);

/// `number` of a beat of a rank: whether it has seen the failure, and its time without progress in one call or, if it
/// waits for other ranks, in one wait.
std::int64_t encode_beat(bool has_seen_failure, double stalled_s, double waiting_s);
bool has_seen_failure(const Message& beat);
double stalled_s(const Message& beat);
double waiting_s(const Message& beat);

/// Seconds between two heartbeats of a rank: 0.25, so that the last position of a lost rank is recent; at most a
/// quarter of silence_s; longer in large jobs, so that all ranks together send at most 4096 per second.
double beat_interval_s(int world, double silence_s);

Message make_message(Message::Kind kind, std::int64_t number = 0, std::string value = {});

/// As a frame, with its length.
std::string encode(const Hello& hello);
std::string encode(const Message& message);
/// From a frame without its length. Empty: the bytes are not a valid hello or message.
std::optional<Hello> decode_hello(std::string_view frame);
std::optional<Message> decode_message(std::string_view frame);
/// Size of a message with empty key and value.
std::size_t message_overhead();

/// Cuts a byte stream into frames. Buffers only what has arrived, whatever length a frame announces.
class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}
  /// Applies to the frames that follow.
  void set_limit(std::size_t bytes) noexcept { limit_ = bytes; }
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next frame, if it has arrived completely.
  std::optional<std::string> take();
  /// The next frame is longer than the limit: the stream cannot be read further.
  bool too_long() const noexcept { return announced() > limit_; }

 private:
  std::size_t announced() const noexcept; // bytes of the next frame; 0: not known yet

  std::size_t limit_;
  std::string buffer_;
  std::size_t taken_ = 0; // consumed bytes of buffer_
};

} // namespace triax::control
