// SPDX-License-Identifier: Apache-2.0
// Shared state of one group: one entry per member for each call in flight, one edge per (from, to, channel), the abort,
// and which members have left.
//
// Threads: any. Each member writes only its own entries, and publishes them with a release store. Ownership: shared by
// the members. A member accesses another's memory only between begin_access() and end_access(). So once quiet() is true
// after an abort, no member reads a buffer that its owner may free.
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

namespace triax::comm_local {

/// A member's progress in a collective: it has published its buffers, has read the peers' `in`, or needs no peer's
/// buffers any more.
enum class Phase : std::uint64_t { posted = 1, moved = 2, done = 3 };

/// A member's side of one collective. Calls `sequence` and `sequence + kInFlight` use the same entry.
struct Entry {
  std::atomic<std::uint64_t> progress{0}; // 4 * sequence + phase; only increases
  Collective collective;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

inline constexpr std::uint64_t kInFlight = 16;

/// An edge: a queue of sends, taken in order by the receiver.
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

class GroupState {
 public:
  explicit GroupState(const Group& group);
  /// The state that all members of this process share under `key`; the first caller creates it.
  static std::shared_ptr<GroupState> shared(const std::string& key, const Group& group);

  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  int world_rank(int member) const noexcept { return ranks_[static_cast<std::size_t>(member)]; }
  const std::string& id() const noexcept { return id_; }

  Entry& entry(int member, std::uint64_t sequence) noexcept { return at(member).entries[sequence % kInFlight]; }
  void publish(int member, std::uint64_t sequence, Phase phase) noexcept {
    entry(member, sequence).progress.store(4 * sequence + static_cast<std::uint64_t>(phase), std::memory_order_release);
  }
  bool reached(int member, std::uint64_t sequence, Phase phase) noexcept {
    return entry(member, sequence).progress.load(std::memory_order_acquire) >=
           4 * sequence + static_cast<std::uint64_t>(phase);
  }
  /// Created on first use.
  Edge& edge(int from, int to, int channel);

  void abort(std::string_view why) noexcept { abort_flag_.raise(why); }
  bool aborted() const noexcept { return abort_flag_.raised(); }
  const std::string& reason() const noexcept { return abort_flag_.reason(); }

  /// After an abort it returns false, and the caller must not access other members' memory.
  bool begin_access(int member) noexcept {
    at(member).busy.store(true, std::memory_order_seq_cst);
    if (!aborted()) return true;
    end_access(member);
    return false;
  }
  void end_access(int member) noexcept { at(member).busy.store(false, std::memory_order_seq_cst); }
  bool quiet() const noexcept;

  /// The member posts no more calls. A peer that waits for it gets an error.
  void leave(int member) noexcept { at(member).left.store(true, std::memory_order_release); }
  /// For a member with incomplete calls: aborts, then waits until no member accesses another's memory.
  void leave_early(int member) noexcept;
  bool left(int member) noexcept { return at(member).left.load(std::memory_order_acquire); }
  std::atomic<std::uint64_t>& barriers(int member) noexcept { return at(member).barriers; }

 private:
  struct alignas(64) Member {
    std::atomic<bool> busy{false}, left{false};
    std::atomic<std::uint64_t> barriers{0};
    std::array<Entry, kInFlight> entries;
  };
  Member& at(int member) noexcept { return members_[static_cast<std::size_t>(member)]; }

  std::string id_;
  std::vector<int> ranks_;
  std::unique_ptr<Member[]> members_;
  AbortFlag abort_flag_;
  std::mutex mutex_; // guards edges_
  std::map<std::tuple<int, int, int>, std::unique_ptr<Edge>> edges_;
};

} // namespace triax::comm_local
