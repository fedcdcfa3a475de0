// SPDX-License-Identifier: Apache-2.0
// Transfers of single numbers between ranks, for tests of communicators.
#pragma once

#include <cstdint>

#include "support/ranks.hpp"
#include "triax/communicator.hpp"

namespace triax::test {

/// A tensor of one i32 in the memory of `rank`, which owns it.
inline TensorView number(Rank& rank, int value) {
  return rank.tensor<std::int32_t>(DType::i32, {1}, {value});
}

inline Transfer send(int peer, const TensorView& view, int channel = 0) {
  return {Direction::send, peer, channel, view};
}
inline Transfer receive(int peer, const TensorView& view, int channel = 0) {
  return {Direction::receive, peer, channel, view};
}

} // namespace triax::test
