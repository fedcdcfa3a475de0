// SPDX-License-Identifier: Apache-2.0
// Weights and tokens of the PyTorch comparison, as in scripts/make-torch-reference.py: integers, exact in f32.
#pragma once

#include <cstdint>

namespace triax::parity {

/// 32 bits from an element's index and the number of the tensor that it belongs to.
constexpr std::uint32_t mix(std::uint64_t index, std::uint32_t stream) {
  std::uint32_t u = static_cast<std::uint32_t>(index) * 0x9E3779B1u + (stream + 1) * 0x85EBCA77u;
  u ^= u >> 15;
  u *= 0x2C1B3C6Du;
  u ^= u >> 12;
  u *= 0x297A2D39u;
  return u ^ u >> 15;
}

/// centre + a 16-bit number in [-1/16, 1/16); `stream` is the parameter's random site.
constexpr double weight(std::uint64_t index, std::uint32_t stream, double centre) {
  return centre + (static_cast<double>(mix(index, stream) >> 16) - 32768) / 524288;
}

/// The stream of tokens that is cut into samples.
constexpr std::int32_t token(std::uint64_t position, std::uint32_t vocab) {
  const std::uint64_t run = position / 12, place = position % 12;
  return static_cast<std::int32_t>((mix(run, 1000) % vocab + place * (1 + mix(run, 1001) % 3)) % vocab);
}

} // namespace triax::parity
