// SPDX-License-Identifier: Apache-2.0
// Description of a collective in the first message between two members of a call, so that a mismatch gives an error
// message and moves no wrong bytes.
#pragma once

#include <cstdint>

#include "triax/communicator.hpp"

namespace triax::p2p {

/// Must be equal on all members of a collective. Sent as it is in memory.
struct Signature {
  Collective collective;
  std::int64_t unused[2] = {0, 0}; // aligns the data that follow in a message
  bool operator==(const Signature&) const = default;
};
static_assert(sizeof(Signature) == 32);

} // namespace triax::p2p
