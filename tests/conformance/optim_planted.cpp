// SPDX-License-Identifier: Apache-2.0
// optim-planted: SGD with momentum in its own loops, with one fault, which the option `fault` names. The conformance
// suite must find each. Without a fault it shows that own loops pass.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <triax/element_type.hpp>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/saved_state.hpp>

namespace triax::optim_planted {

namespace {

constexpr double kMomentum = 0.75;

constexpr triax_option kOptions[] = {
    option_string("fault", "none",
                  "none|no_keys|same_names|many_names|traits_by_call|any_device|not_ready|early_scalars|reads_in_plan|"
                  "ignores_skip|counts_skips|ignores_clip|ignores_lr|decays_all|truncates|writes_beside|allocates|"
                  "hidden_state|part_index|calls|"
                  "bad_load|scratch_end|scratch_kept|scratch_sizes|scales_gradient|per_object|per_rank|hang_extension",
                  "what is wrong with this optimizer"),
};

class PlantedOptimizer final : public Optimizer, public SavedState {
 public:
  explicit PlantedOptimizer(const PluginContext& context) : fault_(context.options.text("fault")), rank_(context.rank) {
    static std::atomic<int> objects = 0;
    number_ = objects++;
  }

  void* extension(std::string_view id) noexcept override {
    while (has("hang_extension")) ::pause();
    return has("bad_load") && id == SavedState::kExtension ? static_cast<SavedState*>(this) : nullptr;
  }
  std::string save() const override { return std::to_string(calls_); }
  void load(std::string_view state) override { calls_ = std::stoi(std::string(state)); }

  Refusals supports(const OptimizerRequest& request) const override {
    Refusals out;
    if (request.master != DType::f32 && request.master != DType::f64)
      out.add(make_refusal(ErrorCode::kUnsupported,
                           has("no_keys") ? std::vector<std::string>{} : std::vector<std::string>{"train.precision"},
                           "master weights in {}", name_of(request.master)));
    if (request.device != DeviceKind::host && !has("any_device"))
      out.add(make_refusal(ErrorCode::kUnsupported, {"kernels.plugin"}, "it runs on the host only"));
    return out;
  }
  OptimizerTraits traits() const override {
    OptimizerTraits out{has("same_names") ? std::vector<std::string>{"u", "u"} : std::vector<std::string>{"u"}};
    while (has("many_names") && out.state.size() <= 64) out.state.push_back(text("u{}", out.state.size()));
    if (has("traits_by_call")) out.elementwise = ++asked_ % 2 == 0;
    return out;
  }
  void prepare(std::span<const ParameterShard>) override {}
  std::size_t scratch_bytes(std::span<const ParameterShard> shards) const override {
    if (has("scratch_sizes")) return 64 / (shards.size() + 1);
    return has("scratch_end") || has("scratch_kept") ? sizeof(double) : 0;
  }

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    const bool is_planned = shards.empty() || !shards.front().master.data();
    if (has("early_scalars") && !is_planned && args.scalars->skip != 0) return;
    if (!has("not_ready")) args.op.stream.ready();
    if (shards.empty() || (is_planned && !has("reads_in_plan"))) return;
    ++calls_;
    if (has("allocates")) kept_ = std::make_unique<int>(calls_);
    if (args.scalars->skip != 0 && !has("ignores_skip")) return;
    for (const ParameterShard& shard : shards)
      with_type_among<float, double>(shard.master.dtype(), [&](auto zero) { update<decltype(zero)>(shard, args); });
    ++updates_;
    if (has("scratch_end")) args.scratch.data()[args.scratch.size()] = std::byte{1};
    if (has("scratch_kept")) args.scratch.front() = std::byte{0};
  }

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }

  template <class T>
  void update(const ParameterShard& shard, const StepArgs& args) {
    const StepScalars& now = *args.scalars;
    T *const p = shard.master.as<T>(), *const u = shard.state[0].as<T>();
    T* const gradient = shard.gradient.as<T>();
    const double clip = has("ignores_clip") ? 1 : static_cast<double>(now.clip);
    const double lr = has("ignores_lr") ? 0.125 : static_cast<double>(now.lr);
    const double decay = shard.spec->decay || has("decays_all") ? args.weight_decay : 0;
    const bool is_first = has("hidden_state") ? updates_ == 0 : has("counts_skips") ? calls_ == 1 : now.step == 1;
    for (std::int64_t i = 0; i < shard.master.elements(); ++i) {
      double g = static_cast<double>(gradient[i]) * clip + decay * static_cast<double>(p[i]);
      if (has("scales_gradient")) gradient[i] = static_cast<T>(g);
      if (has("part_index") && i == 0) g *= 2;
      if (has("calls")) g *= calls_;
      if (has("per_object")) g *= 1 + number_;
      if (has("per_rank")) g *= 1 + rank_;
      if (has("scratch_kept") && args.scratch.front() != std::byte{0}) g = 0;
      u[i] = static_cast<T>(is_first ? g / 2 : kMomentum * static_cast<double>(u[i]) + g);
      p[i] = static_cast<T>(static_cast<double>(p[i]) - lr * static_cast<double>(u[i]));
    }
    if (has("writes_beside")) p[shard.master.elements()] = 0;
    if (!shard.working.empty()) write_working<T>(shard);
  }

  template <class T>
  void write_working(const ParameterShard& shard) const {
    with_type_among<float, Bf16, F16>(shard.working.dtype(), [&](auto zero) {
      using Working = decltype(zero);
      for (std::int64_t i = 0; i < shard.master.elements(); ++i) {
        const auto value = static_cast<double>(shard.master.as<T>()[i]);
        shard.working.as<Working>()[i] = Working(has("truncates") ? value * (1 - 0x1p-8) : value);
      }
    });
  }

  const std::string fault_;
  const int rank_;
  int calls_ = 0, updates_ = 0, number_ = 0;
  mutable int asked_ = 0; // calls of traits()
  std::unique_ptr<int> kept_;
};

} // namespace

} // namespace triax::optim_planted

TRIAX_PLUGIN(triax::Optimizer, triax::optim_planted::PlantedOptimizer, "optim-planted", "0.1.0",
             "an optimizer with a planted fault", triax::optim_planted::kOptions)
