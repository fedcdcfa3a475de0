// SPDX-License-Identifier: Apache-2.0
#include "data/permutation.hpp"

#include <bit>

#include "triax/error.hpp"

namespace triax::data {

namespace {

/// In theory, four rounds are enough for large domains; small domains need a few more.
constexpr std::uint32_t kRounds = 8;

PhiloxBlock block_of(PhiloxKey key, std::uint64_t number, std::uint32_t value, std::uint32_t site) {
  return philox({value, site, static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)}, key);
}

} // namespace

Permutation::Permutation(std::uint64_t size, PhiloxKey key, std::uint64_t number)
    : size_(size), key_(key), number_(number) {
  TRIAX_REQUIRE(size >= 1 && size <= std::uint64_t{1} << 62, "a permutation of {} numbers", size);
  const auto bits = static_cast<unsigned>(std::bit_width(size - 1));
  if (bits > 2) half_bits_ = (bits + 1) / 2;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  TRIAX_REQUIRE(index < size_, "number {} of a permutation of {}", index, size_);
  do {
    index = once(index);
  } while (index >= size_);
  return index;
}

std::uint64_t Permutation::once(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint64_t mixed = left ^ (block_of(key_, number_, static_cast<std::uint32_t>(right), round)[0] & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

std::uint64_t random_below(std::uint64_t size, PhiloxKey key, std::uint64_t number) {
  const PhiloxBlock block = block_of(key, number, 0, kRounds); // the first site that the rounds do not use
  const std::uint64_t random = std::uint64_t{block[1]} << 32 | block[0];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(random) * size >> 64);
}

} // namespace triax::data
