// SPDX-License-Identifier: Apache-2.0
// A group's endpoints: its number, an endpoint per member, and the control messages between members: hello, barrier,
// abort with its reason, leave.
//
// Threads: the rank's main thread; abort() from any thread. Ownership: shared by the communicator and its calls, which
// may stay on their streams for longer; close() is the last use of the transport. Abort:
// announce(), which the progress loop calls, sends the reason to the members.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/p2p/tags.hpp"
#include "triax/p2p/transport.hpp"

namespace triax::p2p {

/// Why an operation was not completed.
inline const char* reason_of(const Request& request) noexcept {
  return request.why ? request.why : "cancelled";
}

class PeerEndpoints final : public RequestOwner, public TransportUser {
 public:
  /// `endpoints`: one per member, null for this one.
  PeerEndpoints(Transport& transport, const Group& group, int number, std::vector<Endpoint*> endpoints);
  ~PeerEndpoints() override;

  Transport& transport() noexcept { return transport_; }
  int size() const noexcept { return group_.size(); }
  int rank() const noexcept { return group_.group_rank; }
  int number() const noexcept { return number_; }
  int world_rank(int member) const noexcept { return group_.ranks[static_cast<std::size_t>(member)]; }
  const std::string& id() const noexcept { return group_.id; }
  Endpoint& endpoint(int member) noexcept { return *endpoints_[static_cast<std::size_t>(member)]; }

  /// Sends hello to all members.
  void send_hello() noexcept { send_control(ControlKind::hello); }
  bool received_hello(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].received_hello; }
  /// Announces this member's next barrier. The message of the previous barrier must have left; see announcing().
  void announce_barrier() noexcept { send_control(ControlKind::barrier); }
  bool announcing(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].sending.open(); }
  /// Number of barriers that a member has reached.
  std::uint64_t barriers(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].barriers; }

  /// Any thread.
  void abort(std::string_view why) noexcept { abort_flag_.raise(why); }
  bool aborted() const noexcept { return abort_flag_.raised(); }
  const std::string& reason() const noexcept { return abort_flag_.reason(); }
  /// Sends this member's abort to the other members, once.
  void announce() noexcept;
  /// True if operations have been in progress for too long since the first call after an abort.
  bool grace_expired() noexcept;
  /// True if any member has left the group; left(): that member.
  bool anyone_left() const noexcept { return left_ > 0; }
  bool left(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].left; }
  /// Leaves the group: informs the members, and detaches from the transport.
  void close() noexcept;

  /// Reports an operation with `member` that has failed.
  void failed(int member, const char* why) noexcept;

  void completed(Request& request) noexcept override;
  void lost(const Endpoint& endpoint) noexcept override;
  void retired(std::string_view why) noexcept override;

 private:
  enum class ControlKind : std::uint32_t { hello, barrier, abort, leave };
  struct Message {
    static constexpr std::size_t kText = 1000;
    ControlKind kind = ControlKind::hello;
    std::uint32_t length = 0;
    char text[kText];
    std::size_t bytes() const noexcept { return offsetof(Message, text) + length; }
  };
  /// Control messages to and from one member.
  struct Peer {
    Message incoming, outgoing;
    Request receiving, sending, sending_last;
    bool received_hello = false, left = false;
    std::uint64_t barriers = 0;
  };

  void post_receive(int member) noexcept;
  void handle_message(int member) noexcept;
  void send_control(ControlKind kind) noexcept;
  void send_last(ControlKind kind, std::string_view text) noexcept;
  template <class Body>
  void for_others(Body body) noexcept;

  Transport& transport_;
  const Group group_;
  const int number_;
  std::vector<Endpoint*> endpoints_;
  std::vector<Peer> peers_;
  Message last_message_; // the last message: abort or leave
  bool last_is_sent_ = false, closed_ = false;
  int left_ = 0;

  AbortFlag abort_flag_;
  bool received_abort_ = false; // another member's abort was received
  Clock::time_point grace_end_{};
};

} // namespace triax::p2p
