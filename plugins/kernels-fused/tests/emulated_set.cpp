// SPDX-License-Identifier: Apache-2.0
#include "emulated_set.hpp"

#include <cmath>

#include "adamw.hpp"
#include "columns.hpp"
#include "embed.hpp"
#include "host_teams.hpp"
#include "norm.hpp"
#include "scratch.hpp"
#include "softmax.hpp"
#include "squares.hpp"
#include "xent.hpp"

namespace triax::kernels_fused {

Refusals EmulatedSet::supports(const OpCall& call) const {
  Refusals no = make_refusal(ErrorCode::kUnsupported, {}, "{} is not this set's own", name_of(call.op));
  switch (call.op) {
    case Op::dropout:
      return call.as<Dropout>().x.rank() < 4 && call.as<Dropout>().drop.p > 0 ? Refusals() : no;
    case Op::act_fwd:
      return call.as<ActFwd>().act == Activation::gelu_tanh ? Refusals() : no;
    case Op::act_bwd:
      return call.as<ActBwd>().act == Activation::gelu_tanh ? Refusals() : no;
    case Op::bias_dropout_add:
    case Op::bias_dropout_add_norm:
    case Op::norm_fwd:
    case Op::norm_bwd_input:
    case Op::norm_bwd_weight:
    case Op::bias_bwd:
    case Op::softmax_fwd:
    case Op::softmax_bwd:
    case Op::xent_max:
    case Op::xent_sums:
    case Op::xent_bwd:
    case Op::xent_fused:
    case Op::embed_bwd:
    case Op::sum_squares:
    case Op::adamw:
    case Op::multi_adamw:
      return {};
    default:
      return no;
  }
}

std::size_t EmulatedSet::scratch_bytes(const OpCall& call) const {
  return own_scratch(call).value_or(0);
}

#define TRIAX_EMULATED(Args, name)                                               \
  void EmulatedSet::do_##name(const Args& args, const OpContext& context) {      \
    kernels_fused::name(args, HostLauncher(context.scratch.data(), backwards_)); \
  }
TRIAX_EMULATED(BiasDropoutAdd, bias_dropout_add)
TRIAX_EMULATED(BiasDropoutAddNorm, bias_dropout_add_norm)
TRIAX_EMULATED(Dropout, dropout)
TRIAX_EMULATED(NormFwd, norm_fwd)
TRIAX_EMULATED(NormBwdInput, norm_bwd_input)
TRIAX_EMULATED(NormBwdWeight, norm_bwd_weight)
TRIAX_EMULATED(BiasBwd, bias_bwd)
TRIAX_EMULATED(SoftmaxFwd, softmax_fwd)
TRIAX_EMULATED(SoftmaxBwd, softmax_bwd)
TRIAX_EMULATED(XentMax, xent_max)
TRIAX_EMULATED(XentSums, xent_sums)
TRIAX_EMULATED(XentBwd, xent_bwd)
TRIAX_EMULATED(EmbedBwd, embed_bwd)
TRIAX_EMULATED(SumSquares, sum_squares)
TRIAX_EMULATED(MultiAdamW, multi_adamw)
#undef TRIAX_EMULATED

void EmulatedSet::do_act_fwd(const ActFwd& args, const OpContext& context) {
  gelu_fwd(args, HostLauncher(context.scratch.data(), backwards_));
}
void EmulatedSet::do_act_bwd(const ActBwd& args, const OpContext& context) {
  gelu_bwd(args, HostLauncher(context.scratch.data(), backwards_));
}
void EmulatedSet::do_adamw(const AdamW& args, const OpContext& context) {
  do_multi_adamw({std::span(&args, 1)}, context);
}
/// The kernel computes the rows. The loss comes from a primitive on a GPU, so it is computed here.
void EmulatedSet::do_xent_fused(const XentFused& args, const OpContext& context) {
  xent_rows(args, HostLauncher(context.scratch.data(), backwards_));
  const std::int64_t samples = args.loss.elements(), rows = args.sum_exp.elements();
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    double loss = 0;
    for (std::int64_t row = sample; row < rows; row += samples)
      loss += std::log(static_cast<double>(args.sum_exp.as<float>()[row])) -
              static_cast<double>(args.target_logit.as<float>()[row]);
    args.loss.as<double>()[sample] = loss;
  }
}

} // namespace triax::kernels_fused
