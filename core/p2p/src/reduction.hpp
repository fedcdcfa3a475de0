// SPDX-License-Identifier: Apache-2.0
// all_reduce and reduce_scatter: member i reduces slice i over all members, in the order of the group, so that the bits
// do not depend on which member computes or when.
//
// In a small all_reduce, each member sends its whole vector to all others, and all add in the same order: one message
// in each direction, and the same bits. A large one works in chunks of slices: a member sends each owner its part, and
// the owner adds the parts and sends the result to all. The result of a chunk also permits the sender to send another
// chunk. So at most kDepth are in flight, and every message finds its receive posted. reduce_scatter sends an empty
// result for this purpose.
//
// Staged device memory: the chunks go through buffers in pinned memory. A member's parts and its own chunks are copied
// there in advance, the host adds them, and results are copied back while others are in flight. The bits equal those of
// host memory. If the library transfers device memory itself, the device adds large sums, with the same bits. Small
// sums and all maxima are staged even then, because the device interface has no maximum.
#pragma once

#include <vector>

#include "collective.hpp"

namespace triax::p2p {

class Reduction final : public CollectiveCall {
 public:
  Reduction(PeerEndpoints& endpoints, const Plan& plan);

  /// True for a small all_reduce.
  static bool is_small(const Plan& plan, const Collective& of) noexcept {
    return of.kind == Collective::Kind::all_reduce &&
           static_cast<std::size_t>(of.elements) * bytes_of(of.dtype) <= plan.small_bytes;
  }
  StagingNeed staging_need(const Collective& of) const noexcept override;

 private:
  /// This member's progress with the owner of a slice.
  struct Owner {
    std::int64_t sent = 0, results = 0; // chunks
    // Device memory: number of parts whose copies have started, and the events of the last copies of parts and results.
    std::int64_t fetched = 0;
    Event fetch[Plan::kDepth], store[Plan::kDepth];
  };
  /// Buffers of staged device memory.
  enum class Buffer { part, result, mine };

  void launch() noexcept override;
  bool run() noexcept override;
  void launch_small() noexcept;
  void send_small(std::byte* packed) noexcept;
  bool run_small() noexcept;
  bool run_small_staged() noexcept;
  /// Advances the messages to and from `owner`; true if there was progress.
  bool feed(int owner) noexcept;
  bool reduce_next() noexcept;
  bool all_here(std::int64_t chunk) noexcept;
  void gather(const std::byte* mine, std::int64_t chunk) noexcept;
  void add(const std::byte* mine, std::byte* to, std::int64_t chunk, std::int64_t elements) noexcept;
  /// True when the chunk is added, which starts when all parts have arrived; sums on the device are then complete.
  bool added(std::int64_t chunk, std::byte* out, std::int64_t elements) noexcept;
  bool finished() noexcept;

  /// An empty result has no memory, so it counts as host memory.
  Side result_side() const noexcept { return reduces_all() ? side() : Side::host; }
  std::byte* buffer(Buffer buffer, std::int64_t chunk, int member = 0) const noexcept;
  /// Starts the copies of parts for an owner (fetch_parts), or of the chunks to reduce here (fetch_mine).
  void fetch_parts(int owner) noexcept;
  void fetch_mine() noexcept;
  bool may_send(int owner) noexcept;
  void store_result(int owner) noexcept;

  bool reduces_all() const noexcept { return of().kind == Collective::Kind::all_reduce; }
  std::int64_t slice_begin(int member) const noexcept { return of().elements * member / size(); }
  /// At least one, which carries the opening.
  std::int64_t chunks(int member) const noexcept;
  /// Number of results that the owner of a slice sends.
  std::int64_t results(int owner) const noexcept;
  /// Start of a chunk of a slice, in elements of the whole.
  std::int64_t begin_of(int member, std::int64_t chunk) const noexcept;
  std::size_t bytes_at(int member, std::int64_t chunk) const noexcept;
  /// True if the opening carries the first chunk of a slice. A message is either all host or all device memory.
  bool with_opening(int member) const noexcept { return !direct() && bytes_at(member, 0) <= Plan::kWithOpening; }
  /// Where another member's part is received.
  std::byte* part_buffer(std::int64_t chunk, int member) noexcept;
  void receive_part(std::int64_t chunk, int member) noexcept;

  const Plan plan_;
  bool small_ = false;
  std::int64_t chunk_elements_ = 1, reduced_ = 0;
  std::int64_t adding_ = -1;  // chunk that the device is adding
  std::vector<Owner> owners_; // by member; this member's own entry: the chunks that it reduces
  std::vector<const std::byte*> sources_;
};

} // namespace triax::p2p
