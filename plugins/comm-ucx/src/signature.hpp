// What a collective is: the first message between two members of a call carries it, so that a slip of one of them is
// told in words instead of moving the wrong bytes.
//
// Threads: values. Ownership, blocking: none.
#pragma once

#include <cstdint>
#include <string>

#include "triax/communicator.hpp"

namespace comm_ucx {

enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };

/// What must be equal on all members of a collective; on the wire as it stands in memory.
struct Signature {
  Kind kind = Kind::all_reduce;
  std::uint8_t dtype = 0, reduce = 0, unused = 0;
  std::int32_t root = 0;
  std::int64_t elements = 0;        // of `in`
  std::int64_t unused2[2] = {0, 0}; // so that what follows it in a message is aligned
  bool operator==(const Signature&) const = default;
};
static_assert(sizeof(Signature) == 32);

std::string to_text(const Signature& signature);

} // namespace comm_ucx
