// SPDX-License-Identifier: Apache-2.0
// Plans a rank: runs the code of a step with a device, a kernel set and communicators that only record requirements.
#include "executor/rank_plan.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/plausible_bytes.hpp"
#include "executor/dry_run_communicator.hpp"
#include "executor/gradient_reductions.hpp"
#include "executor/parameter_gathers.hpp"
#include "executor/rank_state.hpp"
#include "executor/transfer_streams.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

using schedule::Kind;
using schedule::ProgramAction;

void add(CommStats& sum, const CommStats& one, std::uint64_t times) {
  sum.ops += times * one.ops;
  sum.bytes_out += times * one.bytes_out;
  sum.bytes_in += times * one.bytes_in;
}

class Planner {
 public:
  Planner(RankState& state, KernelSet& kernels, Optimizer& optimizer, const schedule::Program& training,
          const schedule::Program& evaluation, const DryRunRequest& request)
      : training_(training),
        evaluation_(evaluation),
        state_(state),
        optimizer_(optimizer),
        notes_(kernels),
        host_notes_(request.host_kernels ? *request.host_kernels : kernels),
        device_(make_dry_run_device(kernels.device_kind())),
        stream_(device_->make_stream("plan")),
        host_(make_dry_run_device(DeviceKind::host)),
        host_stream_(host_->make_stream("plan of the host")),
        axes_(state.communicator_axes(request.layout)),
        communicators_(communicators_of(axes_, request)),
        groups_(groups_of(communicators_)),
        transfers_(*device_, groups_, std::array{&training, &evaluation}, request.assumptions),
        reductions_(*device_, groups_, state) {}

  /// An action is run once for each stage, and counted as often as the program has it.
  Plan take() {
    prepare_optimizer();
    std::map<StageAction, std::uint64_t> times;
    for (const ProgramAction& action : training_.actions()) ++times[{action.kind, action.stage}];
    for (std::size_t i = 0; i < axes_.size(); ++i)
      out_.communication.push_back({communicators_[i]->group().axis,
                                    axes_[i],
                                    std::vector<CommStats>(static_cast<std::size_t>(communicators_[i]->size())),
                                    {}});
    for (ActionId id = 0; id < training_.actions().size(); ++id) {
      const ProgramAction& action = training_.actions()[id];
      if (const auto found = times.find({action.kind, action.stage}); found != times.end()) {
        run(action, id);
        count(found->first, found->second);
        times.erase(found);
      }
    }
    std::set<StageAction> evaluated;
    for (ActionId id = 0; id < evaluation_.actions().size(); ++id) {
      const ProgramAction& action = evaluation_.actions()[id];
      const StageAction of{action.kind, action.stage};
      const bool passes = schedule::runs_layers(action.kind);
      if ((!passes && action.kind != Kind::unshard) || !evaluated.insert(of).second) continue;
      if (passes)
        compute(action, false);
      else
        run(action, id);
      for (std::size_t i = 0; i < communicators_.size(); ++i)
        add_collectives(i, communicators_[i]->take(), out_.evaluation_collectives[of]);
    }
    out_.scratch.operations = notes_.scratch_needed();
    out_.refusals = notes_.refusals();
    out_.scratch.host_updates = host_updates();
    out_.scratch.hosted = host_notes_.scratch_needed();
    out_.host_refusals = host_notes_.refusals();
    return std::move(out_);
  }

 private:
  using Communicators = std::vector<std::unique_ptr<DryRunCommunicator>>;

  static Communicators communicators_of(std::span<const std::vector<std::string>> axes, const DryRunRequest& request) {
    Communicators out;
    for (const std::vector<std::string>& of : axes)
      out.push_back(std::make_unique<DryRunCommunicator>(request.layout.group(request.rank, of)));
    return out;
  }
  static Groups groups_of(const Communicators& communicators) {
    Groups out;
    for (const auto& communicator : communicators) out.set(communicator->group().axis, communicator.get());
    return out;
  }

  /// Runs an action as Executor::run() does.
  void run(const ProgramAction& action, ActionId id) {
    switch (action.kind) {
      case Kind::forward:
      case Kind::backward:
      case Kind::backward_input:
      case Kind::backward_weight:
      case Kind::recompute:
        return compute(action, true);
      case Kind::gather_f:
      case Kind::gather_b:
        return transfers_.gather(id, state_.stage(action.stage).boundary(action), *stream_);
      case Kind::reduce_grad:
        return reductions_.reduce(action.stage, transfers_.begin_reduction(*stream_), id);
      case Kind::reduce_tied:
        return reductions_.reduce_tied(*stream_, id);
      case Kind::norm:
        return find_norm();
      case Kind::opt_step:
        return step_optimizer(action.stage, id);
      case Kind::gather_param:
        return gather_parameters(state_, action.stage, groups_, *device_, *stream_, id);
      case Kind::unshard:
        return unshard_parameters(state_.parameters(), state_.stage(action.stage), action.weights, groups_, transfers_,
                                  *stream_, id);
      case Kind::reshard:
        return;
      default:
        return transfers_.send_or_receive(action, id, state_.stage(action.stage).boundary(action), *stream_);
    }
  }

  void compute(const ProgramAction& action, bool trains) {
    const MicrobatchViews& batch = state_.batches().of(action.microbatch);
    const LayerCall call{.device = *device_,
                         .kernels = notes_,
                         .stream = *stream_,
                         .scratch = {},
                         .groups = groups_,
                         .samples = batch.samples,
                         .dropout = trains,
                         .scalars = &scalars_,
                         .rows = {0, state_.batches().shape().sequence}};
    state_.stage(action.stage).run(action, call, batch);
  }

  void find_norm() {
    const ValueContext values{*device_, notes_, *stream_, groups_, {}, Deadline::max()};
    state_.values().add_squares(values);
    state_.values().collect_losses(state_.batches(), values);
    state_.values().collect_squares(values);
    state_.values().decide(0, {}, values);
  }

  void prepare_optimizer() {
    if (!training_.has(Kind::opt_step)) return;
    call_plugin("prepare", typeid(optimizer_), [&] { optimizer_.prepare(state_.shards()); });
  }

  bool host_updates() const { return state_.offloaded() && state_.offloaded()->is_on_host(); }

  void step_optimizer(int stage, ActionId id) {
    Stream& stream = host_updates() ? *host_stream_ : *stream_;
    KernelSet& kernels = host_updates() ? host_notes_ : notes_;
    for (const OptimizerCall& of : state_.optimizer_calls(stage))
      call_plugin("step", typeid(optimizer_), [&] {
        out_.scratch.optimizer =
            std::max(out_.scratch.optimizer, plausible_bytes(optimizer_.scratch_bytes(of.shards), "scratch_bytes()"));
        optimizer_.step(of.shards,
                        {.scalars = &scalars_, .groups = groups_, .scratch = {}, .op = {stream, {}}, .action = id},
                        kernels);
      });
  }

  /// Adds what the last action has communicated, `times` times.
  void count(const StageAction& action, std::uint64_t times) {
    for (std::size_t axis = 0; axis < communicators_.size(); ++axis) {
      const DryRunCommunicator::Posted posted = communicators_[axis]->take();
      for (std::size_t member = 0; member < posted.of_member.size(); ++member)
        add(out_.communication[axis].of_member[member], posted.of_member[member], times);
      for (const auto& [peer, bytes] : posted.sent) out_.communication[axis].sent[peer] += times * bytes;
      add_collectives(axis, posted, out_.tensor_collectives[action]);
    }
  }

  /// If the tensor ranks are in the group, alone or with those of other axes.
  void add_collectives(std::size_t communicator, const DryRunCommunicator::Posted& posted,
                       std::vector<Collective>& to) const {
    if (std::ranges::find(axes_[communicator], kTensorAxis) == axes_[communicator].end()) return;
    to.insert(to.end(), posted.collectives.begin(), posted.collectives.end());
  }

  const schedule::Program& training_;
  const schedule::Program& evaluation_;
  RankState& state_;
  Optimizer& optimizer_;
  DryRunKernels notes_, host_notes_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Device> host_;
  const std::unique_ptr<Stream> host_stream_;
  const StepScalars scalars_;
  const std::vector<std::vector<std::string>> axes_; // of each communicator
  const Communicators communicators_;
  const Groups groups_;
  TransferStreams transfers_;
  GradientReductions reductions_;
  Plan out_;
};

} // namespace

Plan RankState::plan(KernelSet& kernels, Optimizer& optimizer, const DryRunRequest& request) {
  return Planner(*this, kernels, optimizer, training_, evaluation_, request).take();
}

} // namespace triax::executor
