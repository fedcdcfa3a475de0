// SPDX-License-Identifier: Apache-2.0
#include "signature.hpp"

namespace triax::comm_ucx {

std::string to_text(const Signature& signature) {
  static constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                                "broadcast"};
  std::string out = text("{} of {} {}", kNames[static_cast<std::size_t>(signature.kind)], signature.elements,
                         name_of(static_cast<DType>(signature.dtype)));
  if (signature.kind == Kind::broadcast) return out + text(" from member {}", signature.root);
  if (signature.kind == Kind::all_reduce || signature.kind == Kind::reduce_scatter) {
    out += static_cast<Reduce>(signature.reduce) == Reduce::sum ? " (sum)" : " (max)";
  }
  return out;
}

} // namespace triax::comm_ucx
