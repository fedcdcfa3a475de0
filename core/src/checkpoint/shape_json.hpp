// SPDX-License-Identifier: Apache-2.0
// Shapes as JSON lists of sizes, and limits of JSON texts.
//
// Threads: pure functions. Errors: returned. Included only by files that use nlohmann-json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/tensor.hpp"

namespace triax::checkpoint {

using Json = nlohmann::ordered_json;

/// Lists in lists of a file's JSON. Copies of a Json are recursive: a text of many "[" would overflow the stack.
inline constexpr int kMaxJsonDepth = 16;
/// Bytes of a tensor fit in 64 bits.
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 60;

inline Json to_json(const Shape& shape) {
  Json out = Json::array();
  for (int dim = 0; dim < shape.rank(); ++dim) out.push_back(shape[dim]);
  return out;
}

/// Empty if it is not a list of sizes with at most kMaxElements elements.
inline std::optional<std::uint64_t> elements_of(const Json& sizes) {
  if (!sizes.is_array()) return std::nullopt;
  std::uint64_t out = 1;
  for (const Json& size : sizes) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kMaxElements) return std::nullopt;
    if (size.get<std::uint64_t>() > 0 && out > kMaxElements / size.get<std::uint64_t>()) return std::nullopt;
    out *= size.get<std::uint64_t>();
  }
  return out;
}

/// Empty also for more than kMaxRank sizes.
inline std::optional<Shape> shape_of(const Json& sizes) {
  if (!elements_of(sizes) || sizes.size() > static_cast<std::size_t>(kMaxRank)) return std::nullopt;
  constexpr Shape (*kOfRank[])() = {[] { return Shape(); }, [] { return Shape{0}; },
                                    [] {
                                      return Shape{0, 0};
                                    },
                                    [] {
                                      return Shape{0, 0, 0};
                                    },
                                    [] {
                                      return Shape{0, 0, 0, 0};
                                    }};
  Shape out = kOfRank[sizes.size()]();
  for (int dim = 0; dim < out.rank(); ++dim) out[dim] = sizes[static_cast<std::size_t>(dim)].get<std::int64_t>();
  return out;
}

} // namespace triax::checkpoint
