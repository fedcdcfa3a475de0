// The walk.
#include "executor/executor.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "triax/error.hpp"

namespace triax::executor {

using schedule::Kind;
using schedule::ProgramAction;

Executor::Executor(const ExecutorParts& parts, const ExecutorSettings& settings)
    : parts_(parts),
      settings_(settings),
      loss_gradient_(1 / static_cast<double>(parts.state.batches().shape().tokens())),
      shards_(parts.state.parameters().shards()),
      lanes_(parts.device, parts.groups, std::array{&parts.training, &parts.evaluation}, parts.serial) {
  parts_.optimizer.prepare(shards_);
  list_tied();
}

StepOutcome Executor::step(std::int64_t step, double lr, BatchSource& source, WalkObserver* observer) {
  Batches& batches = parts_.state.batches();
  Walk walk{parts_.training, step, {}, {}, {}, {}, {}, observer};
  walk.scalars.lr = static_cast<float>(lr);
  walk.scalars.step = step;
  batches.stage(source, (step - 1) * batches.shape().global(), parts_.device, parts_.stream, deadline());
  parts_.state.values().send(walk.scalars, parts_.device, parts_.stream, deadline());
  zero_gradients();
  if (observer) observer->walk_begins(step);
  this->walk(walk);
  if (observer) observer->walk_ends(step);
  const Clock::duration elapsed = walk.last_ended - walk.first_began;
  if (elapsed.count() > 0)
    walk.outcome.bubble_rate = static_cast<double>(walk.idle.count()) / static_cast<double>(elapsed.count());
  return walk.outcome;
}

double Executor::evaluate(std::int64_t first, BatchSource& source) {
  Batches& batches = parts_.state.batches();
  Walk walk{parts_.evaluation, 0, {}, {}, {}, {}, {}, nullptr};
  batches.stage(source, first, parts_.device, parts_.stream, deadline());
  this->walk(walk);
  try {
    parts_.state.values().collect(batches, false, value_context(kNoAction));
    return parts_.state.values().loss_sum(first);
  } catch (const Error& error) {
    const std::string inner = error.where().empty() ? "" : ", " + error.where();
    throw Error(error.message(), text("evaluation on held-out samples{}", inner), error.hint());
  }
}

void Executor::walk(Walk& walk) {
  position_.begins(walk.program, walk.step);
  for (ActionId id = 0; id < walk.program.actions().size(); ++id) {
    position_.at(id);
    try {
      run(walk, id);
    } catch (const Error& error) {
      throw Error(error.message(), place(walk, id, error.where()), error.hint());
    } catch (const std::exception& error) {
      throw Error(error.what(), place(walk, id, {}));
    }
  }
  parts_.device.wait(parts_.stream.record(), deadline());
  lanes_.finish(deadline());
  position_.ends();
}

/// Where an error was met, and what the action was still waiting for.
std::string Executor::place(const Walk& walk, ActionId id, const std::string& inner) const {
  std::string out = walk.step > 0 ? text("step {}", walk.step) : "evaluation";
  out += text(", {}", walk.program.label(id));
  const ProgramAction& action = walk.program.actions()[id];
  if (!schedule::is_transfer(action.kind))
    for (const ActionId waited : action.waits) {
      if (!lanes_.pending(waited)) continue;
      const int peer = walk.program.actions()[waited].peer;
      out += text(", waiting for {}", walk.program.label(waited));
      if (peer >= 0) out += text(" (pipeline rank {})", peer);
    }
  return inner.empty() ? out : text("{}, {}", out, inner);
}

void Executor::run(Walk& walk, ActionId id) {
  const ProgramAction& action = walk.program.actions()[id];
  if (schedule::is_transfer(action.kind)) return post(action, id);
  const bool computes = schedule::runs_layers(action.kind);
  for (const ActionId waited : action.waits) lanes_.make_wait(parts_.stream, waited);
  const Clock::duration waited = wait_for_posted(action);
  const Clock::time_point began = Clock::now();
  if (computes && walk.first_began != Clock::time_point{}) walk.idle += waited;
  if (computes && walk.first_began == Clock::time_point{}) walk.first_began = began;

  parts_.stream.begin(id, walk.program.label(id));
  switch (action.kind) {
    case Kind::forward:
    case Kind::backward:
    case Kind::backward_input:
    case Kind::backward_weight:
      compute(walk, id);
      break;
    case Kind::reduce_tied:
      reduce_tied(id);
      break;
    case Kind::norm:
      find_norm(walk, id);
      break;
    case Kind::opt_step:
      step_optimizer();
      break;
    default:
      throw Error("no such action of the compute list");
  }
  parts_.stream.end(id);
  if (!computes) return;
  walk.last_ended = Clock::now();
  if (walk.observer) walk.observer->ran(id, {began, walk.last_ended, waited});
}

void Executor::post(const ProgramAction& action, ActionId id) {
  if (action.kind == Kind::reduce_grad) return reduce_gradients(action.stage, id);
  lanes_.send_or_receive(action, id, parts_.state.stage(action.stage).boundary(action), parts_.stream);
}

/// Operations of the host would wait inside their first call; here the time can be told from computing.
Clock::duration Executor::wait_for_posted(const ProgramAction& next) {
  parts_.device.progress();
  if (parts_.device.kind() != DeviceKind::host) return {}; // its queue waits by itself, and the host runs ahead
  const Event posted = parts_.stream.record();
  if (posted.fired()) return {};
  const auto pending = std::ranges::find_if(next.waits, [this](ActionId waited) { return lanes_.pending(waited); });
  position_.waits_for(pending == next.waits.end() ? kNoAction : *pending);
  const Clock::time_point began = Clock::now();
  parts_.device.wait(posted, deadline());
  position_.waits_for(kNoAction);
  return Clock::now() - began;
}

void Executor::compute(const Walk& walk, ActionId id) {
  const ProgramAction& action = walk.program.actions()[id];
  const MicrobatchViews& batch = parts_.state.batches().of(action.microbatch);
  const LayerCall call{parts_.device,
                       parts_.kernels,
                       parts_.stream,
                       parts_.state.scratch(),
                       parts_.groups,
                       batch.samples,
                       walk.step > 0,
                       loss_gradient_,
                       parts_.state.values().on_device(),
                       id};
  parts_.state.stage(action.stage).run(action, call, batch);
}

void Executor::zero_gradients() {
  for (const Parameter& parameter : parts_.state.parameters().all()) {
    parts_.device.fill(parameter.gradient, 0, parts_.stream);
    for (const TensorView& other : parameter.others) parts_.device.fill(other, 0, parts_.stream);
  }
}

void Executor::reduce_gradients(int stage, ActionId id) {
  Stream& stream = lanes_.begin_reduction(parts_.stream);
  parts_.state.stage(stage).for_each_layer([&](int number, const Layer& layer) {
    const std::vector<TensorView>& accumulators = parts_.state.parameters().gradients_of(number);
    for (std::size_t i = 0; i < accumulators.size(); ++i)
      for (const std::string& axis : layer.params()[i].sum_axes) all_reduce(accumulators[i], axis, stream, id);
    if (!accumulators.empty()) all_reduce(parts_.state.bucket(number), "data", stream, id);
  });
  lanes_.end_reduction(id);
}

void Executor::all_reduce(const TensorView& view, std::string_view axis, Stream& stream, ActionId id) {
  Communicator* group = parts_.groups.find(axis);
  if (!group) return;
  group->wait(group->all_reduce(view, view, Reduce::sum, stream, id), stream);
}

/// Each rank that has a layer of a tied parameter sends its accumulator to the others that have one.
void Executor::list_tied() {
  const int here = parts_.state.parameters().here();
  for (const Parameter& parameter : parts_.state.parameters().all()) {
    const std::set<int> holders(parameter.ranks.begin(), parameter.ranks.end());
    for (std::size_t at = 0; at < parameter.ranks.size(); ++at) {
      const TensorView& view = at == 0 ? parameter.gradient : parameter.others[at - 1];
      const int from = parameter.ranks[at];
      if (from != here) {
        tied_.push_back({Direction::receive, from, 0, view});
        continue;
      }
      for (const int to : holders)
        if (to != here) tied_.push_back({Direction::send, to, 0, view});
    }
  }
}

void Executor::reduce_tied(ActionId id) {
  if (!tied_.empty()) {
    Communicator* group = parts_.groups.find("pipeline");
    group->wait(group->exchange(tied_, parts_.stream, id), parts_.stream);
  }
  for (const Parameter& parameter : parts_.state.parameters().all())
    for (const TensorView& other : parameter.others) parts_.device.add(parameter.gradient, other, parts_.stream);
}

ValueContext Executor::value_context(ActionId id) const {
  return {parts_.device, parts_.kernels, parts_.stream, parts_.groups, parts_.state.scratch(), deadline(), id};
}

void Executor::find_norm(Walk& walk, ActionId id) {
  StepValues& values = parts_.state.values();
  const Batches& batches = parts_.state.batches();
  values.add_squares(value_context(id));
  values.collect(batches, true, value_context(id));
  try {
    walk.outcome.loss =
        values.loss_sum((walk.step - 1) * batches.shape().global()) / static_cast<double>(batches.shape().tokens());
    walk.outcome.grad_norm = values.norm();
  } catch (const Error& error) {
    throw Error(error.message(), error.where(),
                text("the weights are still those of step {}; use a smaller optimizer.lr (this step's is {}), "
                     "a longer lr.warmup_steps, or train.clip_grad",
                     walk.step - 1, walk.scalars.lr));
  }
  if (settings_.clip_grad <= 0) return;
  walk.scalars.clip = static_cast<float>(std::min(1.0, settings_.clip_grad / (walk.outcome.grad_norm + 1e-6)));
  values.send(walk.scalars, parts_.device, parts_.stream, deadline());
}

void Executor::step_optimizer() {
  parts_.optimizer.step(
      shards_, {parts_.state.values().on_device(), settings_.weight_decay, {parts_.stream, parts_.state.scratch()}},
      parts_.kernels);
}

} // namespace triax::executor
