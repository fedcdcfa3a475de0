// What collectives have in common: the k-th call of a member meets the k-th of the others, whatever streams they are
// on; the first message between two members is an opening that carries the signature; requests and scratch come from
// the lane of the stream.
//
// Threads, ownership, blocking: as for calls.
#pragma once

#include <memory>
#include <vector>

#include "call.hpp"
#include "flow.hpp"
#include "signature.hpp"

namespace comm_ucx {

/// Of device memory on its way through pinned memory: the most that is copied and sent at a time.
inline constexpr std::size_t kStagedPiece = std::size_t{512} << 10;

/// How a group of some size reduces; a choice by size only.
struct Plan {
  /// `staged`: of device memory that goes through pinned memory.
  Plan(int members, bool staged);
  std::size_t small_bytes;         // all_reduce: up to here everybody gets every vector whole
  std::size_t chunk_bytes;         // of a slice, at a time
  static constexpr int kDepth = 2; // chunks under way
  /// Up to here an opening and its data go as one message. Larger data go alone: UCX moves them without a copy then.
  static constexpr std::size_t kWithOpening = std::size_t{32} << 10;
};

/// What one call at a time works with: a stream runs one after the other, so each stream of a group has a lane.
struct Lane {
  Lane(const Stream& of, Device& device, int members, int own, const Plan& plan);
  const Stream* stream;
  std::vector<Request> requests; // [use][chunk % depth][member]
  std::unique_ptr<Memory> scratch;
  std::size_t slot_bytes;
  int others, own; // members
  /// Where the chunk of another member comes in.
  std::byte* slot(std::int64_t chunk, int member) const noexcept {
    const std::int64_t index = chunk % Plan::kDepth * others + (member < own ? member : member - 1);
    return static_cast<std::byte*>(scratch->data()) + static_cast<std::size_t>(index) * slot_bytes;
  }
  /// Where this member packs what is small; behind the slots.
  std::byte* packed() const noexcept {
    return static_cast<std::byte*>(scratch->data()) + static_cast<std::size_t>(Plan::kDepth * others) * slot_bytes;
  }
};

class Collective : public Call {
 public:
  explicit Collective(Links& links);

  /// For `sequence`, counted from 1.
  Event start(const Signature& signature, const TensorView& in, const TensorView& out, std::uint64_t sequence,
              Lane& lane);
  /// How the call of that signature moves device memory, and what it takes for it: before start().
  struct Room {
    bool direct = false; // by UCX itself, with places on the device
    std::size_t bytes = 0;
  };
  virtual Room room(const Signature& signature) const noexcept = 0;
  void set_places(bool direct, std::byte* places) noexcept {
    direct_ = direct;
    places_ = places;
  }

 protected:
  enum class Use { opening_in, opening_out, part_in, part_out, result_in, result_out };

  std::size_t requests() const noexcept override { return lane_->requests.size(); }
  Request& request_at(std::size_t index) noexcept override { return lane_->requests[index]; }
  Request& request(Use use, std::int64_t chunk, int member) noexcept;
  Tag tag(int source, Phase phase, std::int64_t chunk = 0) const noexcept {
    return collective_tag(links_.number(), source, sequence_, phase, chunk);
  }
  /// An opening, alone or with data. It is received whole, whatever the other member thinks that it brings.
  void receive_opening(int member) noexcept;
  void send_opening(int member, const std::byte* data, std::size_t bytes) noexcept;
  /// The data of a part.
  std::byte* part(std::int64_t chunk, int member) noexcept;
  /// Whether a member's opening, which is here, says what this call says; else the group is aborted in words.
  bool agrees(int member) noexcept;
  /// Where signatures agree, so do lengths; where they do not, that is told.
  void other_length(const Flow&, std::size_t, bool) noexcept override {}
  DType dtype() const noexcept { return static_cast<DType>(signature_.dtype); }
  int size() const noexcept { return links_.size(); }
  int index() const noexcept { return links_.index(); }

  Signature signature_;
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::int64_t width_ = 0; // bytes of an element
  Lane* lane_ = nullptr;
  /// Device memory in pieces through pinned memory; or as it is.
  bool staged() const noexcept { return places_ && !direct_; }
  bool direct() const noexcept { return direct_; }
  Side side() const noexcept { return direct_ ? Side::device : Side::host; }
  std::byte* places_ = nullptr;

 private:
  bool direct_ = false;
  std::uint64_t sequence_ = 0;
};

} // namespace comm_ucx
