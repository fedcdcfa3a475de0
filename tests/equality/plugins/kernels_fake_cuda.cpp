// SPDX-License-Identifier: Apache-2.0
// kernels-fake-cuda: the reference's operations, or the primitives of another kernel set for the host, on the fake CUDA
// device (support/fake_cuda_device.hpp). An operation is enqueued on its stream and runs later on the stream's thread,
// and the host cannot access its memory. So a missing wait or a host access of the engine or a communicator shows in
// training on any machine.
#include <algorithm>
#include <map>
#include <mutex>
#include <triax/plugin.hpp>
#include <triax/reference_kernels.hpp>

#include "support/fake_cuda_device.hpp"
#include "support/fake_cuda_memory.hpp"

namespace triax::test {
namespace {

/// The arguments with the addresses that an item of a stream uses.
template <class Args, class... Views>
Args aliased(Args args, Views... views) {
  ((args.*views = fake_cuda::alias_of(args.*views)), ...);
  if constexpr (requires { args.drop; }) args.drop.samples = fake_cuda::alias_of(args.drop.samples);
  if constexpr (requires { args.mask; }) args.mask.lengths = fake_cuda::alias_of(args.mask.lengths);
  if constexpr (requires { args.scalars; })
    args.scalars = static_cast<decltype(args.scalars)>(host_alias(const_cast<StepScalars*>(args.scalars)));
  return args;
}

#define VIEWS(Args, ...)               \
  Args on_stream(const Args& args) {   \
    using Of = Args;                   \
    return aliased(args, __VA_ARGS__); \
  }
VIEWS(Gemm, &Of::d, &Of::a, &Of::b)
VIEWS(BiasAdd, &Of::y, &Of::x, &Of::bias)
VIEWS(BiasBwd, &Of::dbias, &Of::dy)
VIEWS(Add, &Of::y, &Of::a, &Of::b)
VIEWS(Dropout, &Of::y, &Of::x)
VIEWS(ActFwd, &Of::y, &Of::x)
VIEWS(ActBwd, &Of::dx, &Of::dy, &Of::x)
VIEWS(NormFwd, &Of::y, &Of::x, &Of::weight, &Of::bias, &Of::mean, &Of::rstd)
VIEWS(NormBwdInput, &Of::dx, &Of::dy, &Of::x, &Of::weight, &Of::mean, &Of::rstd, &Of::residual)
VIEWS(NormBwdWeight, &Of::dweight, &Of::dbias, &Of::dy, &Of::x, &Of::mean, &Of::rstd)
VIEWS(SoftmaxFwd, &Of::y, &Of::x, &Of::lse)
VIEWS(SoftmaxBwd, &Of::dx, &Of::dy, &Of::y, &Of::delta)
VIEWS(SoftmaxFromLse, &Of::y, &Of::x, &Of::lse)
VIEWS(AttentionDelta, &Of::delta, &Of::dout, &Of::o)
VIEWS(AttentionMerge, &Of::o, &Of::lse, &Of::o_more, &Of::lse_more)
VIEWS(Rope, &Of::y, &Of::x)
VIEWS(EmbedFwd, &Of::y, &Of::table, &Of::tokens)
VIEWS(EmbedBwd, &Of::dtable, &Of::dy, &Of::tokens)
VIEWS(XentMax, &Of::max, &Of::logits)
VIEWS(XentSums, &Of::sum_exp, &Of::target_logit, &Of::logits, &Of::max, &Of::targets)
VIEWS(XentLoss, &Of::loss, &Of::sum_exp, &Of::target_logit)
VIEWS(XentBwd, &Of::logits, &Of::max, &Of::sum_exp, &Of::targets)
VIEWS(SumSquares, &Of::out, &Of::x)
VIEWS(StepControl, &Of::squares, &Of::order, &Of::losses)
VIEWS(AdamW, &Of::master, &Of::gradient, &Of::m, &Of::v, &Of::working)
VIEWS(Sgd, &Of::master, &Of::gradient, &Of::velocity, &Of::working)
#undef VIEWS

constexpr triax_option kOptions[] = {
    option_string("inner", "", nullptr, "kernel set that computes, which 16-bit types need; empty: the reference"),
};

/// A kernel set that computes on streams' threads, one call at a time.
struct ComputingHost {
  std::unique_ptr<Device> device = make_host_device();
  std::unique_ptr<Stream> stream = device->make_stream("item");
  std::shared_ptr<KernelSet> set; // destroyed before its device
  std::mutex mutex;
};

class FakeCudaKernels final : public KernelSet {
 public:
  explicit FakeCudaKernels(const PluginContext& context) {
    const std::string& inner = context.options.text("inner");
    if (inner.empty()) return;
    inner_ = std::make_shared<ComputingHost>();
    inner_->set = create_plugin<KernelSet>(context.loader, inner, {});
  }
  DeviceKind device_kind() const noexcept override { return DeviceKind::cuda; }
  Refusals device_available(const DeviceRequest&) const override { return {}; }
  std::unique_ptr<Device> make_device(const DeviceRequest& request) const override {
    return make_fake_cuda_device(static_cast<std::uint64_t>(request.local_rank) + 1);
  }
  using KernelSet::supports;
  Refusals supports(const KernelRequest& request) const override {
    return inner_ ? inner_->set->supports(request) : reference_kernels::ReferenceKernels().supports(request);
  }
  std::size_t scratch_bytes(const OpCall& call) const override {
    const std::size_t own = KernelSet::scratch_bytes(call);
    return inner_ ? std::max(own, inner_->set->scratch_bytes(call)) : own;
  }
  void start(Device&) override {
    if (inner_) inner_->set->start(*inner_->device);
  }

 protected:
#define TRIAX_OP(Args, name)                                                                                         \
  void do_##name(const Args& args, const OpContext& context) override {                                              \
    launch(on_stream(args), context, [](KernelSet& set, const Args& of, const OpContext& on) { set.name(of, on); }); \
  }
  TRIAX_PRIMITIVES(TRIAX_OP)
#undef TRIAX_OP

 private:
  /// Of a stream, unless all share the inner kernel set.
  std::shared_ptr<ComputingHost> host_of(FakeCudaStream& stream) {
    if (inner_) return inner_;
    auto [host, is_new] = hosts_.try_emplace(&stream);
    if (is_new) {
      host->second = std::make_shared<ComputingHost>();
      host->second->set = std::make_shared<reference_kernels::ReferenceKernels>();
    }
    return host->second;
  }

  template <class Args, class Body>
  void launch(const Args& args, const OpContext& context, Body body) {
    FakeCudaStream& stream = fake_launch_stream(context.stream);
    auto* scratch = static_cast<std::byte*>(host_alias(context.scratch.data()));
    stream.enqueue([=, of = host_of(stream), size = context.scratch.size()] {
      const std::lock_guard lock(of->mutex);
      body(*of->set, args, {*of->stream, {scratch, size}});
    });
  }

  std::shared_ptr<ComputingHost> inner_;
  std::map<FakeCudaStream*, std::shared_ptr<ComputingHost>> hosts_;
};

} // namespace
} // namespace triax::test

TRIAX_PLUGIN(triax::KernelSet, triax::test::FakeCudaKernels, "kernels-fake-cuda", "0.1.0",
             "the operations of a host on a CUDA device that is none", triax::test::kOptions)
