// SPDX-License-Identifier: Apache-2.0
// Messages with tags over Unix-domain stream sockets: the transport of a communicator for ranks of one machine. A rank
// listens under a name that the kernel chooses (unix(7): autobind), and opens one connection to each peer, on which it
// sends; it receives on the connections that its peers open.
//
// Threads: the rank's main thread. Ownership: owns its sockets. Blocking: the destructor waits a bounded time until
// what was sent has left. Errors: the constructor and connect() throw; a lost peer aborts its groups.
//
// A message that arrives before its receive is posted is copied into a buffer, which is kept and reused. So a sender is
// never blocked by a receiver that is late, at the cost of memory at the receiver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <triax/p2p/transport.hpp>
#include <utility>
#include <vector>

namespace triax::comm_template {

/// A file descriptor that is closed by its destructor.
class Socket {
 public:
  explicit Socket(int number = -1) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket();
  int number() const { return number_; }

 private:
  int number_;
};

class UnixTransport final : public p2p::Transport {
 public:
  /// `staging_bytes`: pinned memory for the first calls with GPU memory; host memory needs none.
  UnixTransport(Device& device, std::size_t staging_bytes);
  ~UnixTransport() override;

  const char* plugin() const noexcept override { return "comm-template"; }
  const std::string& address() const noexcept override { return address_; }
  const std::string& host() const noexcept override { return host_; }
  p2p::Endpoint& connect(std::string_view address, std::string_view host, int rank) override;

 protected:
  void post_send(p2p::Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side side,
                 bool sync) noexcept override;
  void post_receive(p2p::Request& request, p2p::Endpoint& from, void* data, std::size_t bytes, p2p::Tag tag,
                    p2p::Side side) noexcept override;
  void post_cancel(p2p::Request& request) noexcept override;
  bool find(p2p::Endpoint& from, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept override;
  bool advance() noexcept override;

 private:
  /// The header of a message on the wire. A message without a tag acknowledges the one with this number.
  struct Header {
    p2p::Tag tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0; // of a message that the receiver acknowledges; 0: it does not
  };

  struct Peer;
  /// A posted send or receive, or an acknowledgement.
  struct Operation {
    p2p::Request* request = nullptr; // null: an acknowledgement
    Peer* peer = nullptr;
    Header header;
    std::byte* data = nullptr; // of a receive
    std::size_t bytes = 0;     // of a receive
    std::size_t sent = 0;      // of header and segments together
  };
  /// A message that has arrived before its receive.
  struct Message {
    Header header;
    std::vector<std::byte> data;
  };
  struct Peer final : p2p::Endpoint {
    std::string address;
    Socket out, in;
    std::vector<Operation*> sends, receives, unacknowledged;
    std::vector<Message> messages;
    // The message that is arriving.
    Header header;
    std::size_t header_bytes = 0, body_bytes = 0; // that have arrived
    Operation* target = nullptr;                  // null: into `body`
    bool is_dropped = false;                      // its receive was cancelled
    bool is_closed = false;                       // cannot send; what it has sent may still be unread
    const char* end = nullptr;                    // why nothing more arrives; null: it may
    std::vector<std::byte> body;
  };
  /// A connection whose peer is not known yet.
  struct Guest {
    Socket socket;
    std::string address;
  };

  /// The peer at an endpoint that connect() has made.
  static Peer& peer_of(p2p::Endpoint& endpoint) noexcept;
  /// Allocates what its messages need, so that the steady state does not allocate.
  void reserve(Peer& peer);
  Operation& take_operation();
  void finish(Operation& operation, p2p::Status status, std::size_t length = 0, const char* why = nullptr) noexcept;
  void lose_peer(Peer& peer, const char* why) noexcept;
  bool accept_peers() noexcept;
  void introduce_guests() noexcept;
  bool send_some(Peer& peer) noexcept;
  bool receive_some(Peer& peer) noexcept;
  bool read_into(Peer& peer, std::byte* to, std::size_t bytes, std::size_t& done) noexcept;
  void begin_body(Peer& peer) noexcept;
  void end_body(Peer& peer) noexcept;
  void acknowledge(Peer& peer, const Header& received) noexcept;
  Operation* take_receive(Peer& peer, p2p::Tag tag) noexcept;
  void deliver(Peer& peer, Operation& receive, const Header& header, const std::byte* data) noexcept;

  std::string host_, address_;
  Socket listener_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Guest> guests_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<Operation*> free_;
  std::vector<std::vector<std::byte>> free_buffers_;
  std::uint64_t last_number_ = 0;
};

} // namespace triax::comm_template
