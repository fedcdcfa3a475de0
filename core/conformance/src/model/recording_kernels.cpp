// SPDX-License-Identifier: Apache-2.0
#include "recording_kernels.hpp"

#include <algorithm>

namespace triax::conformance {

namespace {

std::string call_text(const std::vector<RecordedCall>& calls, std::size_t at) {
  if (at >= calls.size()) return "missing";
  return text("{} of {} FLOPs and {} bytes", name_of(calls[at].op), calls[at].flops, calls[at].bytes);
}

} // namespace

double model_flops(const std::vector<RecordedCall>& calls) {
  double out = 0;
  for (const RecordedCall& call : calls) out += call.op == Op::attention_bwd ? call.flops * 4 / 5 : call.flops;
  return out;
}

std::string difference(const std::vector<RecordedCall>& got, const std::vector<RecordedCall>& expected) {
  for (std::size_t i = 0; i < std::max(got.size(), expected.size()); ++i)
    if (i >= got.size() || i >= expected.size() || got[i] != expected[i])
      return text("operation {} is {}, must be {}", i, call_text(got, i), call_text(expected, i));
  return {};
}

} // namespace triax::conformance
