// SPDX-License-Identifier: Apache-2.0
// What the members of a communicator share: memory of this machine, for processes and for threads.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace triax::gpu_stand_in {

constexpr int kMaxMembers = 16;
constexpr int kMaxSplits = 64;                            // of one communicator
constexpr std::size_t kChunkBytes = std::size_t{1} << 18; // data go through shared memory in chunks

enum class Collective : std::uint32_t { kAllReduce = 1, kReduceScatter, kAllGather, kBroadcast };

// What a member calls. Members must call alike.
struct CollectiveCall {
  Collective kind{};
  int type = 0, reduction = 0, root = 0;
  std::uint64_t count = 0;
  bool operator==(const CollectiveCall&) const = default;
};

// From one member to another.
struct Channel {
  std::atomic<std::uint64_t> posted, taken; // chunks
  std::uint64_t bytes, message_bytes;       // of the chunk; of the whole send
  int type;                                 // ncclDataType_t of the send
  std::byte data[kChunkBytes];
  std::uint8_t written[kChunkBytes]; // whether the sender's byte was ever written
};

struct Member {
  std::atomic<pid_t> process;
  std::atomic<std::uint64_t> arrived;   // barriers
  std::atomic<std::uint64_t> waits_for; // identity of the communicator that its next call waits behind; 0: none
  CollectiveCall call;
  std::byte data[kChunkBytes];
};

struct SplitEntry {
  std::atomic<std::uint32_t> is_there;
  int color, key;
};

// New memory is zero.
struct Segment {
  std::atomic<std::uint32_t> joined;
  std::atomic<std::uint32_t> failed; // for all members: calls that do not match, or a process that has ended
  std::atomic<std::uint32_t> left;   // a member aborted: a wait for it to join or to split fails
  Member members[kMaxMembers];
  SplitEntry splits[kMaxSplits][kMaxMembers];
  Channel channels[kMaxMembers][kMaxMembers]; // from, to
};

// Null if the system has no shared memory left.
Segment* open_segment(const std::string& name);
// No member opens it any more.
void unlink_segment(const std::string& name);
// Not a zombie, and not ended.
bool is_process_alive(pid_t process);

} // namespace triax::gpu_stand_in
