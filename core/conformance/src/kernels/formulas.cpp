// SPDX-License-Identifier: Apache-2.0
#include "formulas.hpp"

namespace triax::conformance {

Refusals Formulas::supports(const KernelRequest& request) const {
  if (request.compute == DType::f64 && request.master == DType::f64) return {};
  return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "formulas are computed in fp64 only");
}

void Formulas::run(const OpCall& call, const OpContext&) {
  switch (call.op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return formulas::compute(call.as<Args>());
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  }
}

namespace formulas {

double drop_factor(const Drop& drop, const DropPosition& at) {
  if (drop.p == 0) return 1;
  const std::int64_t e =
      ((drop.head0 + at.head) * drop.rows + drop.row0 + at.row) * drop.width + drop.column0 + at.column;
  const auto sample = static_cast<std::uint32_t>(drop.samples.as<const std::int64_t>()[at.sample]);
  const PhiloxBlock block = philox_at(drop.key, static_cast<std::uint64_t>(e), drop.site, sample);
  const bool is_dropped = block[static_cast<std::size_t>(e % 4)] < drop_threshold(drop.p);
  return is_dropped ? 0 : 1 / (1 - static_cast<double>(drop.p));
}

DropPosition position_in_rows(const Drop& drop, std::int64_t r, std::int64_t j) {
  const std::int64_t samples = drop.p == 0 ? 1 : drop.samples.elements();
  return {r % samples, -drop.head0, r / samples, j};
}

bool sees(const Mask& mask, std::int64_t b, std::int64_t q, std::int64_t k) {
  const bool is_later = mask.kind == Mask::Kind::causal && mask.k0 + k > mask.q0 + q;
  const bool is_past_end = !mask.lengths.empty() && mask.k0 + k >= mask.lengths.as<const std::int32_t>()[b];
  return !is_later && !is_past_end;
}

} // namespace formulas

} // namespace triax::conformance
