// SPDX-License-Identifier: Apache-2.0
// Shared by collectives. The k-th call of a member matches the k-th of the other members, on whatever streams they are.
// The first message between two members of a call (the opening) carries the signature. Requests and scratch belong to
// the StreamScratch of the stream.
#pragma once

#include <memory>
#include <vector>

#include "call.hpp"
#include "signature.hpp"
#include "staged_message.hpp"

namespace triax::p2p {

/// Staged device memory: largest piece that is copied and sent at a time.
inline constexpr std::size_t kStagedPiece = std::size_t{512} << 10;

/// Sizes that select the algorithm of a reduction. They depend on the group size and on staging only.
struct Plan {
  /// `staged`: for device memory that goes through pinned memory.
  Plan(int members, bool staged);
  std::size_t small_bytes;         // all_reduce: up to here, each member sends its whole vector to all
  std::size_t chunk_bytes;         // part of a slice that is sent at a time
  static constexpr int kDepth = 2; // chunks in flight
  /// Up to this size, an opening and its data are one message. Larger data are separate, so that nothing copies
  /// them.
  static constexpr std::size_t kWithOpening = std::size_t{32} << 10;
};

/// Requests and scratch of one call at a time. A stream runs its calls one after another, so each stream has one.
struct StreamScratch {
  StreamScratch(const Stream& of, Device& device, int members, int own, const Plan& plan);
  const Stream* stream;
  std::vector<Request> requests; // [use][chunk % depth][member]
  std::unique_ptr<Memory> memory;
  std::size_t slot_bytes;
  int others, own; // members
  /// Where the chunk of another member is received.
  std::byte* slot(std::int64_t chunk, int member) const noexcept {
    const std::int64_t index = chunk % Plan::kDepth * others + (member < own ? member : member - 1);
    return static_cast<std::byte*>(memory->data()) + static_cast<std::size_t>(index) * slot_bytes;
  }
  /// Where this member packs small messages; after the slots.
  std::byte* packed() const noexcept {
    return static_cast<std::byte*>(memory->data()) + static_cast<std::size_t>(Plan::kDepth * others) * slot_bytes;
  }
};

class CollectiveCall : public Call {
 public:
  explicit CollectiveCall(PeerEndpoints& endpoints);

  /// `sequence` is the number of the collective, counted from 1.
  Event start(const Collective& of, const TensorView& in, const TensorView& out, std::uint64_t sequence,
              StreamScratch& scratch);
  /// How a call moves device memory, and how much memory it needs for that. Queried before start().
  struct StagingNeed {
    bool direct = false; // the library transfers it, with buffers on the device
    std::size_t bytes = 0;
  };
  virtual StagingNeed staging_need(const Collective& of) const noexcept = 0;
  void set_buffers(bool direct, std::byte* buffers) noexcept {
    direct_ = direct;
    buffers_ = buffers;
  }

 protected:
  enum class Use { opening_in, opening_out, part_in, part_out, result_in, result_out };

  std::size_t requests() const noexcept override { return scratch_->requests.size(); }
  Request& request_at(std::size_t index) noexcept override { return scratch_->requests[index]; }
  Request& request(Use use, std::int64_t chunk, int member) noexcept;
  Tag tag(int source, Phase phase, std::int64_t chunk = 0) const noexcept {
    return collective_tag(endpoints_.number(), source, sequence_, phase, chunk);
  }
  /// An opening, with or without data. The receive buffer is large enough for any opening, so that a mismatch is seen.
  void receive_opening(int member) noexcept;
  void send_opening(int member, const std::byte* data, std::size_t bytes) noexcept;
  /// Buffer for the data of a part.
  std::byte* part(std::int64_t chunk, int member) noexcept;
  /// True if a member's opening, which has arrived, has this call's signature; else aborts the group with a message.
  bool agrees(int member) noexcept;
  /// Equal signatures have equal lengths; agrees() reports unequal ones.
  void other_length(const StagedMessage&, std::size_t, bool) noexcept override {}
  const Collective& of() const noexcept { return signature_.collective; }
  int size() const noexcept { return endpoints_.size(); }
  int rank() const noexcept { return endpoints_.rank(); }

  Signature signature_;
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::int64_t width_ = 0; // bytes of an element
  StreamScratch* scratch_ = nullptr;
  /// Device memory moves in pieces through pinned memory; with direct(), the library transfers it.
  bool staged() const noexcept { return buffers_ && !direct_; }
  bool direct() const noexcept { return direct_; }
  Side side() const noexcept { return direct_ ? Side::device : Side::host; }
  std::byte* buffers_ = nullptr;

 private:
  bool direct_ = false;
  std::uint64_t sequence_ = 0;
};

} // namespace triax::p2p
