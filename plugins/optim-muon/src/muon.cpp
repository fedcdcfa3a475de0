// SPDX-License-Identifier: Apache-2.0
// optim-muon: Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024) for the matrices of
// hidden layers, with the update size and weight decay of Liu et al., "Muon is Scalable for LLM Training", arXiv
// 2502.16982; AdamW for all other parameters. The update of a matrix depends on the whole matrix.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <triax/communicator.hpp>
#include <triax/error.hpp>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/precision.hpp>
#include <triax/saved_state.hpp>
#include <triax/text.hpp>
#include <vector>

#include "matrix_batch.hpp"
#include "muon_loops.hpp"
#include "newton_schulz.hpp"

namespace {
using namespace triax;
using namespace triax::optim_muon;

constexpr triax_option kOptions[] = {
    option_string("hidden", "block", nullptr, "layers whose matrices Muon updates: those whose names begin with this"),
    option_float("momentum", "0.95", 0, 0.999999, "decay of the running sum of gradients of these matrices"),
    option_bool("nesterov", "true", "use Nesterov's momentum"),
    option_int("iterations", "5", 1, 20, "steps of the Newton-Schulz iteration"),
    option_float("update_rms", "0.2", 1e-20, 1e20, "root mean square of the elements of a matrix's update, before lr"),
    option_float("beta1", "0.9", 0, 0.999999, "AdamW: decay of the running mean of gradients"),
    option_float("beta2", "0.95", 0, 0.999999, "AdamW: decay of the running mean of squared gradients"),
    option_float("eps", "1e-8", 1e-20, 1, "AdamW: added to the root of the second moment"),
};

class MuonOptimizer final : public Optimizer, public SavedState {
 public:
  explicit MuonOptimizer(const PluginContext& context)
      : layout_(context.layout),
        hidden_(context.options.text("hidden")),
        momentum_(context.options.number("momentum")),
        nesterov_(context.options.flag("nesterov")),
        iterations_(static_cast<int>(context.options.integer("iterations"))),
        update_rms_(context.options.number("update_rms")),
        beta1_(context.options.number("beta1")),
        beta2_(context.options.number("beta2")),
        eps_(context.options.number("eps")) {}

  Refusals supports(const OptimizerRequest& request) const override {
    Refusals out;
    if (request.device != DeviceKind::host)
      out.add(make_refusal(ErrorCode::kUnsupported, {"optimizer.plugin", "kernels.plugin"},
                           "optim-muon computes in host memory; the weights are on the device \"{}\"",
                           name_of(request.device))
                  .with_hint("use a kernel set for the host, or optim-adamw"));
    if (request.master != DType::f32 && request.master != DType::f64)
      out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                           "optim-muon keeps master weights in fp32 or fp64, not {}", precision_name(request.master))
                  .with_hint("set train.precision to fp32, fp64, bf16 or fp16"));
    return out;
  }

  OptimizerTraits traits() const override {
    return {.state = {"momentum", "v"}, .elementwise = false, .adds_over_group = true};
  }

  void* extension(std::string_view id) noexcept override {
    return id == SavedState::kExtension ? static_cast<SavedState*>(this) : nullptr;
  }
  /// The state of a matrix is not that of AdamW, so the parameters that have it must stay the same.
  std::string save() const override { return text("{}{}", kHiddenIs, hidden_); }
  void load(std::string_view state) override {
    if (!state.starts_with(kHiddenIs)) throw Error(text("\"{}\" is not a state of optim-muon", state));
    if (const std::string_view saved = state.substr(kHiddenIs.size()); saved != hidden_)
      throw Error(text("optimizer.hidden is \"{}\", but the state is of optimizer.hidden = \"{}\"", hidden_, saved), {},
                  text("set optimizer.hidden to \"{}\", or checkpoint.load to \"weights\"", saved));
  }

  void prepare(std::span<const ParameterShard> shards) override {
    calls_.resize(shards.size());
    for (const ParameterShard& shard : shards)
      if (is_hidden(shard)) matrices_of(*shard.spec, layout_); // throws for matrices that it cannot update
  }

  /// Matrices of one parameter at a time.
  std::size_t scratch_bytes(std::span<const ParameterShard> shards) const override {
    std::size_t out = 0;
    for (const ParameterShard& shard : shards)
      if (is_hidden(shard))
        out = std::max(out, workspace_bytes(matrices_of(*shard.spec, layout_), shard.master.dtype()));
    return out;
  }

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) override {
    step_others(shards, args, kernels);
    if (std::ranges::none_of(shards, [this](const ParameterShard& shard) { return is_hidden(shard); })) return;
    const bool is_dry_run = args.scratch.empty();
    args.op.stream.ready();
    if (!is_dry_run && args.scalars->skip != 0) return; // on all ranks
    for (const ParameterShard& shard : shards)
      if (is_hidden(shard)) step_matrices(shard, args, kernels);
  }

 private:
  /// By its layer and its shape: all ranks give the same answer.
  bool is_hidden(const ParameterShard& shard) const {
    return shard.name.starts_with(hidden_) && has_matrices(*shard.spec);
  }

  /// AdamW for all other parameters.
  void step_others(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) {
    TRIAX_REQUIRE(shards.size() <= calls_.size(), "prepared for {} shards, called with {}", calls_.size(),
                  shards.size());
    std::size_t count = 0;
    for (const ParameterShard& shard : shards)
      if (!is_hidden(shard))
        calls_[count++] = {.master = shard.master,
                           .gradient = shard.gradient,
                           .m = shard.state[0],
                           .v = shard.state[1],
                           .working = shard.working,
                           .beta1 = beta1_,
                           .beta2 = beta2_,
                           .eps = eps_,
                           .decay = shard.spec->decay ? args.weight_decay : 0,
                           .scalars = args.scalars};
    if (count > 0) kernels.multi_adamw({std::span(calls_).first(count)}, args.op);
  }

  void step_matrices(const ParameterShard& shard, const StepArgs& args, KernelSet& kernels) const {
    const MatrixBatch matrices = matrices_of(*shard.spec, layout_);
    const Workspace work = workspace_of(matrices, shard.master.dtype(), args.scratch);
    const auto own = [&](const TensorView& view) {
      return view.flat().slice(0, shard.first, shard.first + shard.master.elements());
    };
    const bool is_dry_run = args.scratch.empty();
    if (shard.master.elements() < matrices.elements()) fill(work.x, kNothing);
    if (!is_dry_run)
      update_momentum(shard,
                      {.momentum = momentum_, .clip = static_cast<double>(args.scalars->clip), .nesterov = nesterov_},
                      own(work.x));
    if (shard.sharded) gather_parts(shard, work.x, args);
    // Without elements, only the ranks that have other parts need this one. The dry run plans the same memory for all.
    if (shard.master.elements() == 0 && matrices.axis.empty() && !is_dry_run) return;
    const TensorView direction = orthogonalize(matrices, work, iterations_, args, kernels);
    if (is_dry_run) return;
    const auto side = static_cast<double>(std::max(matrices.global_rows, matrices.global_columns));
    update_weights(shard,
                   {.lr = static_cast<double>(args.scalars->lr),
                    .scale = update_rms_ * std::sqrt(side),
                    .decay = args.weight_decay},
                   own(direction));
  }

  /// Every rank of the group has the directions of its part, and kNothing elsewhere: the sum has the bits of the parts.
  void gather_parts(const ParameterShard& shard, const TensorView& x, const StepArgs& args) const {
    Communicator* const group = args.groups.find(shard.group);
    TRIAX_REQUIRE(group, "optim-muon: there is no communicator of {}, whose ranks have parts of {}", shard.group,
                  shard.name);
    group->wait(group->all_reduce(x, x, Reduce::sum, args.op.stream, args.action), args.op.stream);
    args.op.stream.ready();
  }

  static constexpr std::string_view kHiddenIs = "hidden=";
  static constexpr double kNothing = -0.0; // x + kNothing has the bits of x for every x, zeros of both signs too

  const Layout& layout_;
  std::string hidden_;
  double momentum_;
  bool nesterov_;
  int iterations_;
  double update_rms_, beta1_, beta2_, eps_;
  std::vector<AdamW> calls_; // one per shard of a call; prepare() allocates it, so that a step does not allocate
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, MuonOptimizer, "optim-muon", "0.1.0",
             "Muon for matrices of hidden layers, AdamW for other parameters", kOptions)
