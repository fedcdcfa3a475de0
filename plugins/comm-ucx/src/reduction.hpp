// all_reduce and reduce_scatter, by owners: member i reduces the i-th slice over all members, in the order of the
// group, so that the bits do not depend on who computes or when.
//
// A small all_reduce sends every vector whole to everybody, who adds them all in the same order: one message each way,
// and the same bits. A large one goes in chunks of slices: a member sends each owner its part, the owner adds the parts
// and sends the result to all. The result of a chunk is also the leave to send another, so that no more than kDepth are
// under way and every message finds its receive waiting; reduce_scatter sends an empty one for that.
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

 private:
  /// How far this member is with a slice's owner.
  struct Owner {
    std::int64_t sent = 0, results = 0; // chunks
  };

  void launch() noexcept override;
  bool run() noexcept override;
  void launch_small() noexcept;
  bool run_small() noexcept;
  /// Moves on with what goes to `owner` and comes back from it; whether anything did.
  bool feed(int owner) noexcept;
  bool reduce_next() noexcept;
  bool all_here(std::int64_t chunk) noexcept;
  void add(const std::byte* mine, std::byte* to, std::int64_t chunk, std::int64_t elements) noexcept;
  bool finished() const noexcept;

  bool reduces_all() const noexcept { return signature_.kind == Kind::all_reduce; }
  std::int64_t slice_begin(int member) const noexcept { return signature_.elements * member / size(); }
  /// At least one, which brings the opening.
  std::int64_t chunks(int member) const noexcept;
  /// Results of a slice that its owner sends.
  std::int64_t results(int owner) const noexcept;
  /// A chunk of a slice, in elements of the whole.
  std::int64_t begin_of(int member, std::int64_t chunk) const noexcept;
  std::size_t bytes_at(int member, std::int64_t chunk) const noexcept;
  /// Whether the opening brings the first chunk of a slice.
  bool with_opening(int member) const noexcept { return bytes_at(member, 0) <= Plan::kWithOpening; }
  void receive_part(std::int64_t chunk, int member) noexcept;

  const Plan plan_;
  bool small_ = false;
  std::int64_t chunk_elements_ = 1, reduced_ = 0;
  std::vector<Owner> owners_;
  std::vector<const std::byte*> sources_;
};

} // namespace comm_ucx
