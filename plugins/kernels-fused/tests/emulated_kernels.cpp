// SPDX-License-Identifier: Apache-2.0
// Runs attention's kernels on the host, with the same tiles, blocks and shared memory as on a GPU.
#include "emulated_kernels.hpp"

#include "attention_backward.hpp"
#include "attention_forward.hpp"
#include "attention_keys.hpp"
#include "host_machine.hpp"

namespace triax::kernels_fused {

namespace {

template <class Use>
void with_type(DType type, Use&& use) {
  if (type == DType::bf16) return use(Bf16{});
  if (type == DType::f16) return use(F16{});
  use(float{});
}

template <class Body>
void launch(std::int64_t blocks, int threads, std::size_t shared, std::uint32_t seed, Body&& body) {
  HostBlock block(threads, shared, seed);
  for (std::int64_t i = 0; i < blocks; ++i) block.run(i, blocks, body);
}

template <class T>
void backward(const Attention& attention, const AttentionGradients& gradients, std::uint32_t seed) {
  // Two blocks only, so that each processes several rows.
  const std::int64_t rows = attention.size.samples * attention.size.heads * attention.size.queries;
  launch(rows == 0 ? 0 : 2, 64, 0, seed, [&](HostMachine& m) { attention_delta<T>(m, attention, gradients); });
  with_width(attention.size.width, [&](auto width) {
    using Queries = typename TilesFor<T, width()>::Queries;
    using Keys = typename TilesFor<T, width()>::Keys;
    launch(query_blocks<Queries>(attention.size), Queries::kThreads, kQueriesShared<Queries>, seed,
           [&](HostMachine& m) { attention_queries<Queries>(m, attention, gradients); });
    launch(key_blocks<Keys>(attention.size), Keys::kThreads, kKeysShared<Keys>, seed,
           [&](HostMachine& m) { attention_keys<Keys>(m, attention, gradients); });
  });
}

} // namespace

Refusals EmulatedKernels::supports(const OpCall& call) const {
  if (call.op == Op::attention_fwd) {
    const auto& args = call.as<AttentionFwd>();
    return attention_supported(args.q, args.k);
  }
  if (call.op == Op::attention_bwd) {
    const auto& args = call.as<AttentionBwd>();
    return attention_supported(args.q, args.k);
  }
  return make_refusal(ErrorCode::kUnsupported, {}, "attention alone is emulated");
}

std::size_t EmulatedKernels::scratch_bytes(const OpCall& call) const {
  return call.op == Op::attention_bwd ? delta_bytes(call.as<AttentionBwd>().q) : 0;
}

void EmulatedKernels::do_attention_fwd(const AttentionFwd& args, const OpContext&) {
  const Attention attention = attention_of(args);
  with_type(args.q.dtype(), [&](auto type) {
    with_width(attention.size.width, [&](auto width) {
      using Size = typename TilesFor<decltype(type), width()>::Forward;
      launch(query_blocks<Size>(attention.size), Size::kThreads, kForwardShared<Size>, seed_,
             [&](HostMachine& m) { attention_forward<Size>(m, attention); });
    });
  });
}

void EmulatedKernels::do_attention_bwd(const AttentionBwd& args, const OpContext& context) {
  const Attention attention = attention_of(args);
  const AttentionGradients gradients = gradients_of(args, context.scratch.data());
  with_type(args.q.dtype(), [&](auto type) { backward<decltype(type)>(attention, gradients, seed_); });
}

} // namespace triax::kernels_fused
