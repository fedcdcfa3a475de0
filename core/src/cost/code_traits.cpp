// SPDX-License-Identifier: Apache-2.0
#include "cost/code_traits.hpp"

namespace triax::cost {

std::optional<CodeTraits> code_named(std::string_view name) {
  CodeTraits out;
  if (name == "megatron-2021") return out;
  if (name != "megatron-2022") return std::nullopt;
  out.accumulates_in_gemm = true;
  out.overlaps_tensor = true;
  return out;
}

} // namespace triax::cost
