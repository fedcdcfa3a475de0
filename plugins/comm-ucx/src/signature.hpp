// SPDX-License-Identifier: Apache-2.0
// Description of a collective. The first message between two members of a call carries it, so that a mismatch gives an
// error message and moves no wrong bytes.
#pragma once

#include <cstdint>
#include <string>

#include "triax/communicator.hpp"

namespace triax::comm_ucx {

enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };

/// Must be equal on all members of a collective. Sent as it is in memory.
struct Signature {
  Kind kind = Kind::all_reduce;
  std::uint8_t dtype = 0, reduce = 0, unused = 0;
  std::int32_t root = 0;
  std::int64_t elements = 0;        // of `in`
  std::int64_t unused2[2] = {0, 0}; // aligns the data that follow in a message
  bool operator==(const Signature&) const = default;
};
static_assert(sizeof(Signature) == 32);

std::string to_text(const Signature& signature);

} // namespace triax::comm_ucx
