// What the members of one group share: one entry per member for each call in flight, one edge per (from, to, channel),
// the group's abort, and a count of who is still there.
//
// Threads: made for many; every member writes its own entries only and publishes them by a release store. Ownership:
// each member holds one reference, the last one to go deletes. Blocking: never. Abort: the first reason stays; a member
// touches another's memory only between begin_access() and end_access(), so that after an abort, once quiet(), nobody
// reads a buffer that its owner takes back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "triax/communicator.hpp"

namespace comm_local {

using namespace triax;

enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };

/// What must be equal on all members of a collective.
struct Signature {
  Kind kind = Kind::all_reduce;
  DType dtype = DType::f32;
  Reduce reduce = Reduce::sum;
  int root = 0;
  std::int64_t elements = 0; // of `in`
  bool operator==(const Signature&) const = default;
};
std::string to_text(const Signature& signature);

/// How far a member is with a collective: each step tells the others that a part of its memory may be touched, or that
/// it needs theirs no more.
enum class Phase : std::uint64_t { posted = 1, moved = 2, done = 3 };

/// A member's side of one collective. An entry serves every kInFlight-th call.
struct Entry {
  std::atomic<std::uint64_t> progress{0}; // 4 * sequence + phase, only ever growing
  Signature signature;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

inline constexpr std::uint64_t kInFlight = 16;

/// A directed edge: a queue of sends, taken in order by the receiver.
struct Edge {
  struct Send {
    const std::byte* data = nullptr;
    std::int64_t elements = 0;
    DType dtype = DType::f32;
  };
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> taken{0};
  std::array<Send, kInFlight> sends;
};

class Hub {
 public:
  explicit Hub(const Group& group);

  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  int rank(int member) const noexcept { return ranks_[static_cast<std::size_t>(member)]; }
  const std::string& id() const noexcept { return id_; }

  Entry& entry(int member, std::uint64_t sequence) noexcept { return at(member).entries[sequence % kInFlight]; }
  void publish(int member, std::uint64_t sequence, Phase phase) noexcept {
    entry(member, sequence).progress.store(4 * sequence + static_cast<std::uint64_t>(phase), std::memory_order_release);
  }
  bool reached(int member, std::uint64_t sequence, Phase phase) noexcept {
    return entry(member, sequence).progress.load(std::memory_order_acquire) >=
           4 * sequence + static_cast<std::uint64_t>(phase);
  }
  /// Made at first use.
  Edge& edge(int from, int to, int channel);

  void abort(std::string_view why) noexcept;
  bool aborted() const noexcept { return aborted_.load(std::memory_order_seq_cst); }
  /// After aborted().
  const std::string& reason() const noexcept { return reason_; }

  /// False, and no access, after an abort.
  bool begin_access(int member) noexcept {
    at(member).busy.store(true, std::memory_order_seq_cst);
    if (!aborted()) return true;
    end_access(member);
    return false;
  }
  void end_access(int member) noexcept { at(member).busy.store(false, std::memory_order_seq_cst); }
  bool quiet() const noexcept;

  void arrive(int member) noexcept { at(member).present.store(true, std::memory_order_release); }
  bool arrived(int member) noexcept { return at(member).present.load(std::memory_order_acquire); }
  /// A member that leaves posts no more: whoever still waits for it is told so.
  void leave(int member) noexcept { at(member).left.store(true, std::memory_order_release); }
  /// With calls that are not complete: aborts, and waits until no member touches another's memory.
  void leave_early(int member) noexcept;
  bool left(int member) noexcept { return at(member).left.load(std::memory_order_acquire); }
  std::atomic<std::uint64_t>& barriers(int member) noexcept { return at(member).barriers; }

  /// Gives back `count` references.
  void release(int count) noexcept;

 private:
  struct alignas(64) Member {
    std::atomic<bool> present{false}, busy{false}, left{false};
    std::atomic<std::uint64_t> barriers{0};
    std::array<Entry, kInFlight> entries;
  };
  Member& at(int member) noexcept { return members_[static_cast<std::size_t>(member)]; }

  std::string id_;
  std::vector<int> ranks_;
  std::unique_ptr<Member[]> members_;
  std::atomic<int> references_;
  std::atomic<bool> aborted_{false};
  std::mutex mutex_; // of reason_ until aborted, and of edges_
  std::string reason_;
  std::map<std::tuple<int, int, int>, std::unique_ptr<Edge>> edges_;
};

struct Release {
  void operator()(Hub* hub) const noexcept { hub->release(1); }
};
/// One member's reference.
using HubRef = std::unique_ptr<Hub, Release>;

} // namespace comm_local
