// SPDX-License-Identifier: Apache-2.0
// optim-counting: gradient descent whose rate falls with the number of its steps, which it saves as text.
#include <charconv>
#include <string>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/saved_state.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_bool("forgets", "false", "it has no state to save"),
    option_bool("differs", "false", "a defect: its state is another on each rank"),
    option_int("cannot_save", "-1", -1, 1e9, "a defect: after this number of steps, save() throws an Error"),
};

class CountingDescent final : public Optimizer, public SavedState {
 public:
  explicit CountingDescent(const PluginContext& context)
      : forgets_(context.options.flag("forgets")),
        rank_(context.options.flag("differs") ? context.rank : 0),
        cannot_save_(context.options.integer("cannot_save")) {}
  void* extension(std::string_view id) noexcept override {
    return id == SavedState::kExtension && !forgets_ ? static_cast<SavedState*>(this) : nullptr;
  }
  Refusals supports(const OptimizerRequest&) const override { return {}; }
  OptimizerTraits traits() const override { return {}; }
  void prepare(std::span<const ParameterShard>) override {}
  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    if (shards.empty() || !shards.front().master.data()) return; // dry run
    if (args.scalars->step != at_) ++count_;                     // once for all stages of the rank
    at_ = args.scalars->step;
    const float rate = args.scalars->lr * args.scalars->clip / static_cast<float>(count_);
    for (const ParameterShard& shard : shards)
      for (std::int64_t i = 0; i < shard.master.elements(); ++i)
        shard.master.as<float>()[i] -= rate * shard.gradient.as<float>()[i];
  }

  std::string save() const override {
    if (count_ == cannot_save_) throw Error(text("no state after {} steps", count_));
    return text("{}", count_ + rank_);
  }
  void load(std::string_view state) override {
    if (std::from_chars(state.data(), state.data() + state.size(), count_).ec != std::errc())
      throw Error(text("\"{}\" is not a count", state));
    at_ = -1;
  }

 private:
  const bool forgets_;
  const int rank_;
  const std::int64_t cannot_save_;
  std::int64_t count_ = 0, at_ = -1;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, CountingDescent, "optim-counting", "0.1.0", "gradient descent that counts its steps",
             kOptions)
