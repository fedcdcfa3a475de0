// SPDX-License-Identifier: Apache-2.0
// optim-planted-norms: gradient descent in which each gradient is divided by its norm over the whole parameter, with
// one fault of its ranks, which the option `fault` names. The conformance suite must find each. Without a fault it
// shows that an optimizer which adds over ranks passes.
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <triax/communicator.hpp>
#include <triax/element_type.hpp>
#include <triax/layout.hpp>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>

namespace triax::optim_planted_norms {

namespace {

constexpr double kEps = 0x1p-10;         // added to a norm
constexpr std::size_t kMaxMembers = 256; // of a group

constexpr triax_option kOptions[] = {
    option_string("fault", "none",
                  "none|ignores_group|wrong_group|ignores_cuts|ignores_sharded|differs_by_rank|order_by_rank|"
                  "order_in_steps|empty_parts|less_in_steps|claims_elementwise",
                  "what is wrong with this optimizer"),
};

class NormedOptimizer final : public Optimizer {
 public:
  explicit NormedOptimizer(const PluginContext& context) : fault_(context.options.text("fault")), rank_(context.rank) {}

  Refusals supports(const OptimizerRequest& request) const override {
    Refusals out;
    if (request.master != DType::f32 && request.master != DType::f64)
      out.add(
          make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "master weights in {}", name_of(request.master)));
    if (request.device != DeviceKind::host)
      out.add(make_refusal(ErrorCode::kUnsupported, {"kernels.plugin"}, "it runs on the host only"));
    return out;
  }
  OptimizerTraits traits() const override {
    return {.state = {}, .elementwise = has("claims_elementwise"), .adds_over_group = true};
  }
  void prepare(std::span<const ParameterShard>) override {}
  /// The sum of this rank, and those of all ranks of a group.
  std::size_t scratch_bytes(std::span<const ParameterShard>) const override {
    return (1 + kMaxMembers) * sizeof(double);
  }

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    const bool is_dry_run = args.scratch.empty();
    args.op.stream.ready();
    if (!is_dry_run && args.scalars->skip != 0) return; // on all ranks
    for (const ParameterShard& shard : shards) {
      double sum = is_dry_run ? 0 : sum_squares(shard, static_cast<double>(args.scalars->clip));
      add_over_ranks(shard, args, sum);
      if (is_dry_run) continue;
      with_type_among<float, double>(shard.master.dtype(),
                                     [&](auto zero) { update<decltype(zero)>(shard, args, std::sqrt(sum)); });
    }
  }

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }

  /// Of the owned elements of the gradient.
  double sum_squares(const ParameterShard& shard, double clip) const {
    const TensorView owned = has("ignores_sharded") ? shard.gradient : shard.owned(shard.gradient);
    double out = 0;
    with_type_among<float, double>(owned.dtype(), [&](auto zero) {
      for (std::int64_t i = 0; i < owned.elements(); ++i) {
        const double g = static_cast<double>(owned.as<const decltype(zero)>()[i]) * clip;
        out += g * g;
      }
    });
    return out;
  }

  /// First over the ranks that own parts, then over those of each axis that cuts the parameter.
  void add_over_ranks(const ParameterShard& shard, const StepArgs& args, double& sum) const {
    const bool is_dry_run = args.scratch.empty();
    const bool is_reversed = rank_ == 1 && (has("order_by_rank") || (has("order_in_steps") && !is_dry_run));
    if (is_reversed) add_over_cuts(shard, args, sum);
    const bool is_left_out = has("ignores_group") || has("ignores_sharded") ||
                             (has("empty_parts") && shard.owned_elements == 0) ||
                             (has("less_in_steps") && !is_dry_run && rank_ == 1);
    if (!shard.group.empty() && !is_left_out)
      add(has("wrong_group") ? std::string(kTensorAxis) : shard.group, args, sum);
    if (!is_reversed) add_over_cuts(shard, args, sum);
  }
  void add_over_cuts(const ParameterShard& shard, const StepArgs& args, double& sum) const {
    if (has("ignores_cuts")) return;
    for (const Cut& cut : shard.spec->cuts) add(cut.axis, args, sum);
  }

  /// Adds in the order of the ranks, so that all have the same bits.
  static void add(const std::string& axis, const StepArgs& args, double& sum) {
    Communicator* const group = args.groups.find(axis);
    if (!group) return; // one rank
    auto* const own = reinterpret_cast<double*>(args.scratch.data());
    double* const all = own ? own + 1 : nullptr;
    if (own) *own = sum;
    group->wait(group->all_gather({own, DType::f64, Shape{1}}, {all, DType::f64, Shape{group->size()}}, args.op.stream,
                                  args.action),
                args.op.stream);
    args.op.stream.ready();
    if (!own) return; // dry run
    sum = 0;
    for (int rank = 0; rank < group->size(); ++rank) sum += all[rank];
  }

  template <class T>
  void update(const ParameterShard& shard, const StepArgs& args, double norm) const {
    const StepScalars& now = *args.scalars;
    T* const p = shard.master.as<T>();
    const T* const gradient = shard.gradient.as<const T>();
    const double decay = shard.spec->decay ? args.weight_decay : 0, lr = static_cast<double>(now.lr);
    const double factor = static_cast<double>(now.clip) / (norm + kEps) * (has("differs_by_rank") ? 1 + rank_ : 1);
    for (std::int64_t i = 0; i < shard.master.elements(); ++i) {
      const auto before = static_cast<double>(p[i]);
      p[i] = static_cast<T>(before - lr * (static_cast<double>(gradient[i]) * factor + decay * before));
    }
    if (shard.working.empty()) return; // layers read the master weights
    with_type_among<float, Bf16, F16>(shard.working.dtype(), [&](auto zero) {
      using Working = decltype(zero);
      for (std::int64_t i = 0; i < shard.master.elements(); ++i)
        shard.working.as<Working>()[i] = Working(static_cast<double>(p[i]));
    });
  }

  const std::string fault_;
  const int rank_;
};

} // namespace

} // namespace triax::optim_planted_norms

TRIAX_PLUGIN(triax::Optimizer, triax::optim_planted_norms::NormedOptimizer, "optim-planted-norms", "0.1.0",
             "an optimizer that adds over ranks, with a planted fault", triax::optim_planted_norms::kOptions)
