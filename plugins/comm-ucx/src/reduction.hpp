// all_reduce and reduce_scatter, by owners: member i reduces the i-th slice over all members, in the order of the
// group, so that the bits do not depend on who computes or when.
//
// A small all_reduce sends every vector whole to everybody, who adds them all in the same order: one message each way,
// and the same bits. A large one goes in chunks of slices: a member sends each owner its part, the owner adds the parts
// and sends the result to all. The result of a chunk is also the leave to send another, so that no more than kDepth are
// under way and every message finds its receive waiting; reduce_scatter sends an empty one for that.
//
// Of device memory the chunks go the same ways through places in pinned memory: a member's parts and its own chunks are
// copied there ahead of their turn, the host adds them, and results are copied back while others are on the wire. The
// bits are those of host memory. Where UCX carries device memory itself, large sums are added there, with the same
// bits; small ones and maxima go through pinned memory all the same: a device adds, and has no maximum.
//
// Threads, ownership, blocking: as for calls.
#pragma once

#include <vector>

#include "collective.hpp"

namespace comm_ucx {

class Reduction final : public Collective {
 public:
  Reduction(Links& links, const Plan& plan);

  /// Whether an all_reduce of so many bytes is small.
  static bool small(const Plan& plan, std::size_t bytes) noexcept { return bytes <= plan.small_bytes; }
  Room room(const Signature& signature) const noexcept override;

 private:
  /// How far this member is with a slice's owner.
  struct Owner {
    std::int64_t sent = 0, results = 0; // chunks
    // Of device memory: parts whose copies have begun, and the copies of the last parts and results.
    std::int64_t fetched = 0;
    Event fetch[Plan::kDepth], store[Plan::kDepth];
  };
  /// The places of device memory.
  enum class Place { part, result, mine };

  void launch() noexcept override;
  bool run() noexcept override;
  void launch_small() noexcept;
  void send_small(std::byte* packed) noexcept;
  bool run_small() noexcept;
  bool run_small_staged() noexcept;
  /// Moves on with what goes to `owner` and comes back from it; whether anything did.
  bool feed(int owner) noexcept;
  bool reduce_next() noexcept;
  bool all_here(std::int64_t chunk) noexcept;
  void gather(const std::byte* mine, std::int64_t chunk) noexcept;
  void add(const std::byte* mine, std::byte* to, std::int64_t chunk, std::int64_t elements) noexcept;
  /// Where the chunk is added, once it may be and all is here; adds on the device are over when this says so.
  bool added(std::int64_t chunk, std::byte* out, std::int64_t elements) noexcept;
  bool finished() noexcept;

  /// An empty result is nowhere.
  Side result_side() const noexcept { return reduces_all() ? side() : Side::host; }
  std::byte* place(Place place, std::int64_t chunk, int member = 0) const noexcept;
  /// Begins to copy what will be sent to an owner, or reduced here.
  void fetch_parts(int owner) noexcept;
  void fetch_mine() noexcept;
  bool may_send(int owner) noexcept;
  void store_result(int owner) noexcept;

  bool reduces_all() const noexcept { return signature_.kind == Kind::all_reduce; }
  std::int64_t slice_begin(int member) const noexcept { return signature_.elements * member / size(); }
  /// At least one, which brings the opening.
  std::int64_t chunks(int member) const noexcept;
  /// Results of a slice that its owner sends.
  std::int64_t results(int owner) const noexcept;
  /// A chunk of a slice, in elements of the whole.
  std::int64_t begin_of(int member, std::int64_t chunk) const noexcept;
  std::size_t bytes_at(int member, std::int64_t chunk) const noexcept;
  /// Whether the opening brings the first chunk of a slice. One message is all of the host or all of the device.
  bool with_opening(int member) const noexcept { return !direct() && bytes_at(member, 0) <= Plan::kWithOpening; }
  /// Where another's part comes in.
  std::byte* part_place(std::int64_t chunk, int member) noexcept;
  void receive_part(std::int64_t chunk, int member) noexcept;

  const Plan plan_;
  bool small_ = false;
  std::int64_t chunk_elements_ = 1, reduced_ = 0;
  std::int64_t adding_ = -1;  // the chunk that the device adds
  std::vector<Owner> owners_; // the own one: of what is reduced here
  std::vector<const std::byte*> sources_;
};

} // namespace comm_ucx
