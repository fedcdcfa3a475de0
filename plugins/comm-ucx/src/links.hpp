// A group's links: its number, an endpoint for each member, and the few words that members tell each other beside the
// data: hello, "I am at the barrier", "I have aborted, because", "I am leaving".
//
// Threads: the rank's main thread, but for abort(). Ownership: shared by the communicator and its calls, which may stay
// on their streams for longer; close() is the last that touches the transport. Blocking: never. Abort: the first reason
// stays; the members are told by announce(), which the pump calls.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tags.hpp"
#include "transport.hpp"
#include "triax/communicator.hpp"

namespace comm_ucx {

class Links final : public RequestOwner, public TransportUser {
 public:
  /// `endpoints`: one a member, null for this one.
  Links(Transport& transport, const Group& group, int number, std::vector<Endpoint*> endpoints);
  ~Links() override;

  Transport& transport() noexcept { return transport_; }
  int size() const noexcept { return group_.size(); }
  int index() const noexcept { return group_.index; }
  int number() const noexcept { return number_; }
  int rank(int member) const noexcept { return group_.ranks[static_cast<std::size_t>(member)]; }
  const std::string& id() const noexcept { return group_.id; }
  Endpoint& endpoint(int member) noexcept { return *endpoints_[static_cast<std::size_t>(member)]; }

  /// Told to a member once it has heard it.
  void greet() noexcept { tell(Word::hello); }
  bool greeted(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].greeted; }
  /// Once a barrier; the one before must have been told to all.
  void tell_barrier() noexcept { tell(Word::barrier); }
  bool telling(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].saying.open(); }
  /// How many barriers a member has come to.
  std::uint64_t barriers(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].barriers; }

  /// Any thread.
  void abort(std::string_view why) noexcept;
  bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
  /// After aborted().
  const std::string& reason() const noexcept { return reason_; }
  /// Tells the members of an abort of this one's, once.
  void announce() noexcept;
  /// How long operations may stay under way after an abort that this has seen.
  bool out_of_patience() noexcept;
  /// Whether somebody has left the group, and whether that one has.
  bool anyone_left() const noexcept { return left_ > 0; }
  bool left(int member) const noexcept { return peers_[static_cast<std::size_t>(member)].left; }
  /// Leaves: tells the members, and lets go of the transport.
  void close() noexcept;

  /// An operation with `member` has failed.
  void failed(int member, ucs_status_t status) noexcept;

  void ended(Request& request) noexcept override;
  void lost(const Endpoint& endpoint) noexcept override;
  void retired(std::string_view why) noexcept override;

 private:
  enum class Word : std::uint32_t { hello, barrier, abort, leave };
  struct Message {
    static constexpr std::size_t kText = 1000;
    Word word = Word::hello;
    std::uint32_t length = 0;
    char text[kText];
    std::size_t bytes() const noexcept { return offsetof(Message, text) + length; }
  };
  /// What is said to and heard from a member.
  struct Peer {
    Message heard, said;
    Request hearing, saying, parting;
    bool greeted = false, left = false;
    std::uint64_t barriers = 0;
  };

  void listen(int member) noexcept;
  void hear(int member) noexcept;
  void tell(Word word) noexcept;
  void part(Word word, std::string_view text) noexcept;
  template <class Body>
  void for_others(Body body) noexcept;

  Transport& transport_;
  const Group group_;
  const int number_;
  std::vector<Endpoint*> endpoints_;
  std::vector<Peer> peers_;
  Message parting_; // the last word: abort or leave
  bool parted_ = false, closed_ = false;
  int left_ = 0;

  std::mutex mutex_; // of reason_ until aborted
  std::string reason_;
  std::atomic<bool> aborted_{false};
  bool heard_abort_ = false; // of another's
  Clock::time_point patience_{};
};

} // namespace comm_ucx
