// SPDX-License-Identifier: Apache-2.0
// Converts the elements of one tensor, block by block, to another floating type.
//
// Threads: one per object. Ownership: results are valid until the next call. Errors: Error for a value that the type
// cannot hold.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/blocks.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

class BlockConverter {
 public:
  /// `name`: of the tensor, for the error.
  BlockConverter(std::string name, DType from, DType to) : name_(std::move(name)), from_(from), to_(to) {}

  /// Equal types keep all bits: the result may be `from` itself.
  std::span<const std::byte> convert(std::span<const std::byte> from) {
    if (from_ == to_) return from;
    values_.resize(from.size() / bytes_of(from_));
    to_doubles(from_, from.data(), values_);
    out_.resize(values_.size() * bytes_of(to_));
    if (from_doubles(values_, to_, out_.data()) > 0)
      throw Error(text("{} has values that are too large for {}", name_, triax::name_of(to_)), {},
                  "choose a type with a larger range: --dtype bf16, f32 or f64");
    return out_;
  }

 private:
  const std::string name_;
  const DType from_, to_;
  std::vector<double> values_;
  std::vector<std::byte> out_;
};

} // namespace triax::checkpoint
