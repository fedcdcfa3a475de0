// SPDX-License-Identifier: Apache-2.0
// kernels-planted: the reference operations with one fault, which the option `fault` names. The conformance suite must
// find each. The sums of bias_bwd are its own, so that they can depend on what they must not depend on.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <triax/cheap_recompute.hpp>
#include <triax/element_type.hpp>
#include <triax/plugin.hpp>
#include <triax/reference_kernels.hpp>
#include <vector>

namespace triax::kernels_planted {

namespace {

using reference_kernels::ReferenceKernels;

constexpr triax_option kOptions[] = {
    option_string(
        "fault", "none",
        "none|no_message|short_keys|refuses_silently|per_object|plan_reads|scratch_by_address|no_threads|"
        "writes_input|writes_beside|writes_padding|scratch_end|scratch_kept|reads_output|allocates|overwrites|"
        "in_place|aligned_only|derivative|truncates|counts_calls|by_address|tail|by_threads|dropout|dropout_first|mask|"
        "embedding|padding|scalars|norm_eps|adamw_eps|fused|repeats_none|repeats_changes|crash|throws|hang",
        "what is wrong with this kernel set"),
    option_int("threads", "1", 1, 64, "the number of parts of a sum, with the fault by_threads"),
};

bool is_aligned(const TensorView& view, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(view.data()) % bytes == 0;
}

class PlantedKernels final : public ReferenceKernels, public RepeatLimits {
 public:
  explicit PlantedKernels(const PluginContext& context)
      : ReferenceKernels("kernels-planted"),
        fault_(context.options.text("fault")),
        threads_(static_cast<int>(context.options.integer("threads"))) {
    static std::atomic<int> objects = 0;
    number_ = objects++;
  }

  Refusals supports(const KernelRequest& request) const override {
    Refusals out = ReferenceKernels::supports(request);
    for (Refusal& refusal : out) {
      if (has("no_message")) refusal.message.clear();
      if (has("short_keys")) refusal.keys = {"precision"};
      if (has("per_object")) refusal.message += text(" by object {}", number_);
    }
    return out;
  }
  Refusals supports(const OpCall& call) const override {
    while (has("hang")) ::pause();
    if (has("refuses_silently") && call.op == Op::rope && call.as<Rope>().x.size(3) > 8)
      return Refusal{ErrorCode::kUnsupported, {}, {}, {}};
    return ReferenceKernels::supports(call);
  }
  std::size_t scratch_bytes(const OpCall& call) const override {
    const std::size_t bytes = ReferenceKernels::scratch_bytes(call);
    if (call.op == Op::add && has("plan_reads")) return bytes + *call.as<Add>().a.as<const unsigned char>();
    if (call.op == Op::add && has("scratch_by_address")) return bytes + (call.as<Add>().a.data() ? 0 : 64);
    return bytes + (call.op == Op::bias_add && has("scratch_kept") ? sizeof(double) : 0);
  }
  void* extension(std::string_view id) noexcept override {
    return id == RepeatLimits::kExtension ? static_cast<RepeatLimits*>(this) : nullptr;
  }
  Refusals repeats(const OpCall& primitive) const override {
    const bool is_repeat = primitive.op == Op::act_fwd || primitive.op == Op::norm_fwd;
    if (!is_repeat || !(has("repeats_none") || (has("repeats_changes") && ++asked_ % 2 == 0))) return {};
    return make_refusal(ErrorCode::kUnsupported, {}, "it does not repeat {}", name_of(primitive.op));
  }
  int threads() const noexcept override { return has("no_threads") ? 0 : threads_; }

 protected:
  void do_add(const Add& args, const OpContext& context) override {
    if (has("crash")) ::raise(SIGSEGV);
    if (has("throws") && args.y.elements() == 1) throw Error("sums of one element are not written yet");
    ReferenceKernels::do_add(args, context);
    if (args.y.elements() == 0) return;
    with_type_among<float, double>(args.y.dtype(), [&]<class T>(T) {
      T* const y = args.y.as<T>();
      if (has("in_place") && args.y.data() == args.b.data()) y[0] += T{1};
      if (has("writes_input") && args.y.data() != args.b.data()) args.b.as<T>()[0] = T{0};
      if (has("writes_beside")) y[args.y.elements()] = T{0};
      if (has("tail"))
        for (std::int64_t i = 0; i < args.y.elements(); ++i)
          if (reinterpret_cast<std::uintptr_t>(y + i) % 32 == 0) y[i] = std::nextafter(y[i], T{0});
    });
  }

  void do_bias_add(const BiasAdd& args, const OpContext& context) override {
    with_type_among<float, double>(args.y.dtype(), [&]<class T>(T) {
      const bool was_zero = has("reads_output") && args.y.elements() > 0 && args.y.as<T>()[0] == T{0};
      const bool kept = has("scratch_kept") && context.scratch.front() == std::byte{0};
      ReferenceKernels::do_bias_add(args, context);
      if (args.y.elements() > 0 && (was_zero || kept)) args.y.as<T>()[0] += T{1};
      if (args.y.elements() > 0 && has("aligned_only") && !is_aligned(args.y, 16)) args.y.as<T>()[0] += T{1};
    });
    if (has("scratch_end")) context.scratch.data()[context.scratch.size()] = std::byte{1};
    if (has("allocates")) kept_ = std::make_unique<int>(number_);
  }

  void do_bias_bwd(const BiasBwd& args, const OpContext&) override {
    const std::int64_t n = args.dy.size(-1), rows = n == 0 ? 0 : args.dy.elements() / n;
    ++calls_;
    const std::int64_t parts = parts_of_sum(args.dy);
    with_type_among<float, double>(args.dy.dtype(), [&]<class T>(T) {
      for (std::int64_t j = 0; j < n; ++j) {
        T total = 0;
        for (std::int64_t part = 0; part < parts; ++part) {
          T sum = 0;
          for (std::int64_t r = rows * part / parts; r < rows * (part + 1) / parts; ++r)
            sum += args.dy.as<T>()[r * n + j];
          total += sum;
        }
        args.dbias.as<T>()[j] = has("overwrites") ? total : args.dbias.as<T>()[j] + total;
      }
    });
  }

  void do_act_bwd(const ActBwd& args, const OpContext& context) override {
    ReferenceKernels::do_act_bwd(args, context);
    if (has("derivative") && args.act == Activation::silu_mul)
      with_type_among<float, double>(args.dx.dtype(), [&]<class T>(T) {
        for (std::int64_t i = 0; i < args.dx.elements(); ++i) args.dx.as<T>()[i] *= T(1.25);
      });
  }

  void do_norm_fwd(const NormFwd& args, const OpContext& context) override {
    NormFwd changed = args;
    if (has("norm_eps")) changed.eps = 1e-5;
    ReferenceKernels::do_norm_fwd(changed, context);
  }

  void do_linear_fwd(const LinearFwd& args, const OpContext& context) override {
    ReferenceKernels::do_linear_fwd(args, context);
    if (has("fused") && args.act != Activation::none)
      with_type_among<float, double>(args.y.dtype(),
                                     [&]<class T>(T) { args.y.as<T>()[0] = std::nextafter(args.y.as<T>()[0], T{9}); });
  }

  void do_adamw(const AdamW& args, const OpContext& context) override {
    AdamW changed = args;
    if (has("adamw_eps")) changed.eps = 1e-8;
    ReferenceKernels::do_adamw(changed, context);
    if (has("truncates") && args.working.dtype() == DType::f32 && args.master.dtype() == DType::f32)
      for (std::int64_t i = 0; i < args.working.elements(); ++i)
        args.working.as<float>()[i] =
            std::bit_cast<float>(std::bit_cast<std::uint32_t>(args.working.as<float>()[i]) & ~std::uint32_t{3});
  }

  void do_dropout(const Dropout& args, const OpContext& context) override {
    Dropout changed = args;
    if (has("dropout")) changed.drop.row0 = 0;
    std::vector<std::int64_t> numbers;
    if (has("dropout_first") && args.drop.samples.data()) {
      for (std::int64_t i = 0; i < args.drop.samples.elements(); ++i)
        numbers.push_back(*args.drop.samples.as<const std::int64_t>() + i);
      changed.drop.samples = {numbers.data(), DType::i64, {args.drop.samples.elements()}};
    }
    ReferenceKernels::do_dropout(changed, context);
  }

  void do_softmax_fwd(const SoftmaxFwd& args, const OpContext& context) override {
    SoftmaxFwd changed = args;
    if (has("mask")) ++changed.mask.q0;
    ReferenceKernels::do_softmax_fwd(changed, context);
  }

  void do_embed_fwd(const EmbedFwd& args, const OpContext& context) override {
    EmbedFwd changed = args;
    if (has("embedding")) changed.valid = args.table.size(0);
    ReferenceKernels::do_embed_fwd(changed, context);
  }

  void do_xent_sums(const XentSums& args, const OpContext& context) override {
    XentSums changed = args;
    if (has("padding")) changed.valid = args.logits.size(-1);
    ReferenceKernels::do_xent_sums(changed, context);
  }

  void do_xent_bwd(const XentBwd& args, const OpContext& context) override {
    XentBwd changed = args;
    if (has("scalars")) changed.scalars = nullptr;
    ReferenceKernels::do_xent_bwd(changed, context);
  }

  void do_rope(const Rope& args, const OpContext& context) override {
    ReferenceKernels::do_rope(args, context);
    if (has("writes_padding") && !args.y.contiguous())
      with_type_among<float, double>(args.y.dtype(), [&]<class T>(T) { args.y.as<T>()[args.y.size(3)] = T{0}; });
  }

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }

  std::int64_t parts_of_sum(const TensorView& x) const {
    if (has("by_threads")) return threads_;
    if (has("counts_calls")) return 1 + calls_ % 3;
    if (has("by_address")) return 1 + static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x.data()) / 256 % 8);
    return 1;
  }

  const std::string fault_;
  const int threads_;
  int number_ = 0, calls_ = 0;
  mutable int asked_ = 0; // with repeats_changes
  std::unique_ptr<int> kept_;
};

} // namespace

} // namespace triax::kernels_planted

TRIAX_PLUGIN(triax::KernelSet, triax::kernels_planted::PlantedKernels, "kernels-planted", "0.1.0",
             "the reference operations with a planted fault", triax::kernels_planted::kOptions)
