// SPDX-License-Identifier: Apache-2.0
#include "train/generating_rank.hpp"

#include <atomic>
#include <optional>

#include "base/caught_error.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "os/cpu_quota.hpp"
#include "train/agreement.hpp"
#include "train/plugin_states.hpp"
#include "train/rank_groups.hpp"
#include "train/rank_setup.hpp"
#include "train/recorded_traffic.hpp"
#include "train/verified_load.hpp"
#include "train/wait_for_ranks.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr double kLateness = 2; // seconds

std::vector<std::vector<std::string>> axes_of(const Layout& layout) {
  std::vector<std::vector<std::string>> out;
  for (const Axis& axis : layout.axes())
    if (axis.size > 1) out.push_back({axis.name});
  return out;
}

/// Reads the part of a parameter that a rank has. Rows that are padding keep their zeros.
void read_weights(checkpoint::TensorReader& reader, const std::string& name, const ParamSpec& spec,
                  const TensorView& host) {
  note_load_progress();
  const checkpoint::SavedTensor* const saved = reader.find(name, checkpoint::kMasterState);
  if (!saved || !(saved->shape == spec.global) || saved->dtype != host.dtype())
    throw Error(text("the checkpoint has no parameter {} of shape {} and type {}", name, to_text(spec.global),
                     name_of(host.dtype())),
                reader.folder().string(), "use the model.* keys that the checkpoint was written with");
  const TensorView stored = executor::without_padding(host, spec).flat();
  for (const executor::Box& box : executor::boxes_of(spec, 0, stored.elements()))
    reader.read(*saved, box.begin, box.size,
                stored.as<std::byte>() + static_cast<std::size_t>(box.offset) * bytes_of(saved->dtype));
}

} // namespace

// Members are constructed in this order and destroyed in reverse.
struct GeneratingRank::Impl final : control::JobAbort::Listener {
  Impl(const config::RunConfig& config, const Layout& ranks, int this_rank, Store& shared, Log& to,
       const RankOptions& given)
      : run(config),
        layout(ranks),
        number(this_rank),
        options(given),
        store(shared),
        plugins(config, ranks, this_rank, given.threads > 0 ? given.threads : os::available_cores(), to),
        request(generate_request(config, layout, this_rank, plugins)),
        state(request),
        groups(config, layout, this_rank) {
    if (options.plugins_created) options.plugins_created();
    device = plugins.make_device({options.local_rank, options.local_ranks});
    device->set_default_timeout(timeout_s());
    stream = device->make_stream("compute");
    if (options.abort) listening.emplace(*options.abort, *this);
    try {
      start();
    } catch (...) { // before the groups are destroyed: other ranks must see the cause first
      if (options.failing) options.failing(caught_error());
      throw;
    }
  }

  double timeout_s() const { return options.waits_are_watched ? kNoTimeout : run.train.stall_timeout_s + kLateness; }

  void start() {
    call_plugin("start", run.kernels.name.c_str(), [&] { plugins.kernels().start(*device); });
    groups.join(plugins, *device, axes_of(layout), store, run.train.stall_timeout_s + kLateness, nullptr);
    const executor::GenerateState::Plan plan = state.plan(plugins.kernels());
    if (!plan.refusals.empty()) throw to_error(plan.refusals, run.kernels.name);
    state.allocate(*device, *stream, plan.scratch);
    groups.register_memory(state.blocks());
    generator.emplace(executor::GeneratorParts{*device, *stream, plugins.kernels(), groups.groups(), state,
                                               request.assumptions, timeout_s()});
    agreement.emplace(*device, *stream, groups.of_axes(), kMaxAgreed);
  }

  void abort(std::string_view why) noexcept override {
    device->abort_flag().raise(why); // first: waits throw this reason
    groups.abort(why);
  }

  const config::RunConfig& run;
  const Layout layout;
  const int number;
  const RankOptions options;
  Store& store;
  std::unique_ptr<Device> device; // outlives plugins and memory
  RankPlugins plugins;
  const executor::GenerateRequest request;
  executor::GenerateState state;
  std::unique_ptr<Stream> stream;
  // These own memory that other ranks may read until the communicators are destroyed.
  std::optional<Agreement> agreement;
  std::optional<executor::Generator> generator;
  RankGroups groups;
  std::atomic<std::int64_t> tokens{-1};                  // of each sequence; -1: no prompt yet
  std::optional<control::JobAbort::Listening> listening; // destroyed first
};

GeneratingRank::GeneratingRank(const config::RunConfig& run, const Layout& layout, int rank, Store& store, Log& log,
                               const RankOptions& options)
    : impl_(std::make_unique<Impl>(run, layout, rank, store, log, options)) {}

GeneratingRank::~GeneratingRank() = default;

void GeneratingRank::load(const std::filesystem::path& checkpoint) {
  Impl& rank = *impl_;
  checkpoint::TensorReader reader(checkpoint);
  const VerifiedShare share{static_cast<std::size_t>(rank.number), static_cast<std::size_t>(rank.layout.world_size()),
                            checkpoint::kMasterState};
  load_verified(reader, share, rank.device->abort_flag(), [&] {
    rank.state.load(*rank.device, *rank.stream,
                    [&](const std::string& name, const ParamSpec& spec, const TensorView& host) {
                      rank.device->abort_flag().check();
                      read_weights(reader, name, spec, host);
                    });
  });
  std::map<std::string, std::string> states = reader.manifest().training.plugins;
  std::erase_if(states, [](const auto& state) { return state.first != "model"; });
  PluginStates(rank.run, rank.plugins).load(states);
}

executor::Generator& GeneratingRank::generator() {
  return *impl_->generator;
}

const executor::GenerateState& GeneratingRank::state() const {
  return impl_->state;
}

void GeneratingRank::agree(std::span<std::int32_t> values) {
  impl_->agreement->largest(values, deadline_in(impl_->timeout_s()));
}

void GeneratingRank::set_position(std::int64_t tokens) {
  impl_->tokens = tokens;
}

std::string GeneratingRank::position() const {
  const std::int64_t tokens = impl_->tokens;
  return tokens < 0 ? "before the first prompt" : text("after {} tokens", tokens);
}

std::vector<report::GroupTraffic> GeneratingRank::traffic() const {
  return impl_->groups.traffic(RecordedTraffic());
}

} // namespace triax::train
