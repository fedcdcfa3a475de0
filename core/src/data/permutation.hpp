// SPDX-License-Identifier: Apache-2.0
// A random permutation of 0 .. size-1 without a table: each element is computed on its own, in constant memory.
//
// Threads: immutable value. Errors: Error for a size or an index that is out of range.
// A Feistel network permutes the numbers of an even number of bits, at most 4 * size of them. A result outside the
// range is permuted again until it is inside, which keeps the map a permutation ("cycle walking": Black and Rogaway,
// "Ciphers with arbitrary finite domains", CT-RSA 2002). The round function is Philox, as for all random numbers of the
// engine.
#pragma once

#include <cstdint>

#include "triax/random.hpp"

namespace triax::data {

class Permutation {
 public:
  /// `number` selects one of the permutations of a key. 1 <= size <= 2^62.
  Permutation(std::uint64_t size, PhiloxKey key, std::uint64_t number);
  /// Element `index` of the permutation; index < size.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t once(std::uint64_t value) const;

  std::uint64_t size_;
  PhiloxKey key_;
  std::uint64_t number_;
  unsigned half_bits_ = 1;
};

/// Uniform in [0, size), for `number` of this key; does not share random numbers with Permutation.
std::uint64_t random_below(std::uint64_t size, PhiloxKey key, std::uint64_t number);

} // namespace triax::data
