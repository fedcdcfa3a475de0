// SPDX-License-Identifier: Apache-2.0
// Runs programs. optimizer_step.cpp has OPT_STEP, and step_outcome.cpp the results of a step.
#include "executor/executor.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/caught_error.hpp"
#include "executor/parameter_gathers.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

constexpr const char* kEvaluation = "evaluation on held-out samples";

} // namespace

using schedule::Kind;
using schedule::ProgramAction;

Executor::Executor(const ExecutorParts& parts, const ExecutorSettings& settings)
    : parts_(parts),
      settings_(settings),
      loss_gradient_(1 / static_cast<double>(parts.state.batches().shape().tokens())),
      loss_scale_(settings.loss_scale ? static_cast<double>(settings.loss_scale->initial) : 1),
      transfer_streams_(parts.device, parts.groups, std::array{&parts.training, &parts.evaluation}, parts.assumptions),
      reductions_(parts.device, parts.groups, parts.state) {
  lazy_load_guard_ = find_extension<LazyLoadGuard>(parts_.device);
  if (settings.record) {
    recorder_ = find_extension<Recorder>(parts_.device);
    TRIAX_REQUIRE(recorder_, "{} cannot record a step (train.cuda_graph)", parts_.device.description());
  }
  if (parts_.training.has(Kind::opt_step)) {
    call_plugin("prepare", typeid(parts_.optimizer), [&] { parts_.optimizer.prepare(parts_.state.shards()); });
    for (const std::unique_ptr<Stage>& stage : parts_.state.stages())
      optimizer_calls_[stage->index()] = parts_.state.optimizer_calls(stage->index());
  }
  if (delayed()) use_delayed_updates();
  offload_inputs();
  StepScalars first;
  first.loss_scale = static_cast<float>(loss_scale_);
  first.hysteresis = rules().hysteresis;
  parts_.state.values().start(first, parts_.device, parts_.stream, deadline());
}

void Executor::offload_inputs() {
  std::vector<HostedStage> hosted;
  for (const std::unique_ptr<Stage>& stage : parts_.state.stages())
    if (HostedStage of = stage->hosted_stage(); !of.groups.empty()) hosted.push_back(std::move(of));
  if (hosted.empty()) return;
  input_offload_ = std::make_unique<InputOffload>(parts_.device, parts_.stream, hosted, parts_.training);
  for (const HostedStage& of : hosted) parts_.state.stage(of.stage).offload_inputs(*input_offload_);
}

void Executor::resume(std::int64_t step, std::int64_t samples, const StepScalars& scalars) {
  skipped_samples_ = samples - step * parts_.state.batches().shape().global();
  loss_scale_ = static_cast<double>(scalars.loss_scale);
  parts_.state.values().start(scalars, parts_.device, parts_.stream, deadline());
}

StepOutcome Executor::step(std::int64_t step, double lr, const Request& request, BatchSource& source,
                           WalkObserver* observer) {
  Batches& batches = parts_.state.batches();
  Walk walk{.program = parts_.training,
            .step = step,
            .request = request,
            .observer = observer,
            .next_batch = step < settings_.last_step ? &source : nullptr};
  batches.stage(source, first_sample(step), parts_.device, parts_.stream, deadline());
  parts_.state.values().send_rate(static_cast<float>(lr), parts_.device, parts_.stream, deadline());
  if (observer) observer->walk_begins(step);
  const StepOutcome::Ran ran = train(walk);
  if (observer) observer->walk_ends(step);
  StepOutcome out = outcome(walk, lr);
  out.ran = ran;
  return out;
}

/// Runs two steps before the capture: by then, lazily loaded code is loaded and ring buffers have their final size.
StepOutcome::Ran Executor::train(Walk& walk) {
  constexpr int kWalkedFirst = 2;
  const bool records = recorder_ && !recording_ && walked_ == kWalkedFirst;
  if (!recorder_ || (!recording_ && !records)) {
    walk.must_zero = delayed() != nullptr; // the gradients of the last step leave while forwards run
    if (!walk.must_zero) zero_gradients();
    this->walk(walk);
    ++walked_;
    return StepOutcome::Ran::walked;
  }
  position_.begins(walk.program, walk.step);
  if (records) {
    finish(); // a capture begins on an idle stream
    record(walk);
  }
  walk.norm = recorded_norm_;
  position_.at(static_cast<ActionId>(walk.program.actions().size())); // past the last action: the whole step
  try {
    send_request(walk.request);
    recording_->launch(parts_.stream);
    wait_for_device(walk);
  } catch (...) { // communicators whose calls it contains complete only after it is destroyed
    recording_.reset();
    throw;
  }
  position_.ends();
  return records ? StepOutcome::Ran::recorded : StepOutcome::Ran::launched;
}

void Executor::record(Walk& walk) {
  recorder_->begin_recording(parts_.stream);
  is_recording_ = true;
  try {
    zero_gradients();
    walk_list(walk);
  } catch (...) {
    is_recording_ = false;
    try {
      recorder_->end_recording();
    } catch (const std::exception&) { // ignored: the captured step is incomplete
    }
    throw;
  }
  is_recording_ = false;
  recording_ = recorder_->end_recording();
  recorded_norm_ = walk.norm;
}

void Executor::repeat(std::int64_t step, NonfiniteSearch& search) {
  const Request none;
  Walk walk{
      .program = step > 0 ? parts_.training : parts_.evaluation, .step = step, .request = none, .search = &search};
  if (step > 0) zero_gradients();
  this->walk(walk);
  finish();
}

void Executor::stay_at_norm(std::int64_t step) {
  const auto actions = parts_.training.actions();
  const auto norm = std::ranges::find(actions, Kind::norm, &ProgramAction::kind);
  position_.begins(parts_.training, step);
  position_.at(static_cast<ActionId>(norm - actions.begin()));
}

Executor::Evaluated Executor::evaluate(std::int64_t first, std::int64_t count, const Request& request,
                                       BatchSource& source) {
  Batches& batches = parts_.state.batches();
  Walk walk{.program = parts_.evaluation, .request = request};
  batches.stage(source, first, parts_.device, parts_.stream, deadline());
  this->walk(walk);
  try {
    send_request(request);
    parts_.state.values().collect_losses(batches, value_context(kNoAction));
    parts_.device.wait(parts_.stream.record(), deadline());
    Evaluated out{parts_.state.values().loss_sum(count), parts_.state.values().largest_request(), {}};
    if (const std::string loss = parts_.state.values().nonfinite_loss(first, count); !loss.empty())
      out.nonfinite.emplace(loss, kEvaluation);
    return out;
  } catch (const Error& error) {
    const std::string inner = error.where().empty() ? "" : ", " + error.where();
    throw Error(error.message(), text("{}{}", kEvaluation, inner), error.hint());
  }
}

void Executor::walk(Walk& walk) {
  const bool evaluates = &walk.program == &parts_.evaluation;
  if (lazy_load_guard_) lazy_load_guard_->set_may_load_modules(evaluates ? !evaluated_ : walked_ == 0);
  position_.begins(walk.program, walk.step);
  walk_list(walk);
  wait_for_device(walk);
  transfer_streams_.finish(deadline());
  position_.ends();
  if (evaluates) evaluated_ = true;
}

/// Later work on the stream is ordered behind the optimizer's work, so the host waits only for the values that it
/// reads. A capture is one piece of work, and an observer reads the times of all actions.
void Executor::wait_for_device(const Walk& walk) {
  const Event end = walk.values && !walk.observer ? *walk.values : parts_.stream.record();
  if (walk.next_batch) {
    parts_.state.batches().read_ahead(*walk.next_batch, first_sample(walk.step + 1), parts_.device, deadline());
  }
  parts_.device.wait(end, deadline());
}

void Executor::finish() {
  parts_.device.wait(parts_.stream.record(), deadline());
  if (OffloadedState* const offloaded = parts_.state.offloaded()) offloaded->finish(parts_.device, deadline());
}

void Executor::walk_list(Walk& walk) {
  if (input_offload_) input_offload_->begin(walk.program);
  for (ActionId id = 0; id < walk.program.actions().size(); ++id) {
    position_.at(id);
    try {
      run(walk, id);
    } catch (...) {
      const Error error = caught_error();
      throw Error(error.message(), location(walk, id, error.where()), error.hint());
    }
  }
}

/// Location of an error: step, action, and the transfers that the action still waits for.
std::string Executor::location(const Walk& walk, ActionId id, const std::string& inner) const {
  std::string out = walk.step > 0 ? text("step {}", walk.step) : "evaluation";
  out += text(", {}", walk.program.label(id));
  const ProgramAction& action = walk.program.actions()[id];
  if (!schedule::is_transfer(action.kind))
    for (const ActionId waited : action.waits) {
      if (!transfer_streams_.pending(waited)) continue;
      const int peer = walk.program.actions()[waited].peer;
      out += text(", waiting for {}", walk.program.label(waited));
      if (peer >= 0) out += text(" (pipeline rank {})", peer);
    }
  return inner.empty() ? out : text("{}, {}", out, inner);
}

void Executor::run(Walk& walk, ActionId id) {
  const ProgramAction& action = walk.program.actions()[id];
  if (walk.must_zero && schedule::begins_backward(action.kind)) {
    zero_gradients();
    walk.must_zero = false;
  }
  if (schedule::is_transfer(action.kind)) {
    const Clock::time_point began = walk.observer ? Clock::now() : Clock::time_point{};
    post(action, id);
    if (walk.observer) walk.observer->ran(id, {began, Clock::now()});
    return;
  }
  const bool computes = schedule::runs_layers(action.kind);
  for (const ActionId waited : action.waits) transfer_streams_.make_wait(parts_.stream, waited);
  const Clock::duration waited = wait_for_posted(action);
  const Clock::time_point began = Clock::now();
  const bool passes = computes || schedule::gathers(action.kind); // a gather waits for what its pass would wait for
  if (passes && walk.first_began != Clock::time_point{}) walk.idle += waited;
  if (computes && walk.first_began == Clock::time_point{}) walk.first_began = began;

  parts_.stream.begin(id, walk.program.label(id));
  switch (action.kind) {
    case Kind::forward:
    case Kind::backward:
    case Kind::backward_input:
    case Kind::backward_weight:
    case Kind::recompute:
      compute(walk, id);
      break;
    case Kind::gather_f:
    case Kind::gather_b:
      transfer_streams_.gather(id, parts_.state.stage(action.stage).boundary(action), parts_.stream);
      break;
    case Kind::reduce_tied:
      reductions_.reduce_tied(parts_.stream, id);
      break;
    case Kind::norm:
      if (!walk.search) find_norm(walk, id);
      break;
    case Kind::opt_step:
      if (!walk.search) step_optimizer(walk, action.stage, id);
      break;
    case Kind::gather_param:
      if (!walk.search) gather_parameters(parts_.state, action.stage, parts_.groups, parts_.device, parts_.stream, id);
      break;
    case Kind::reshard: // later actions may use the slot
      break;
    default:
      throw Error("unknown compute action");
  }
  parts_.stream.end(id);
  if (!computes && !walk.observer) return;
  const Clock::time_point ended = Clock::now();
  if (computes) walk.last_ended = ended;
  if (walk.observer) walk.observer->ran(id, {began, ended, waited});
}

void Executor::post(const ProgramAction& action, ActionId id) {
  if (action.kind == Kind::reduce_grad) return reduce_gradients(action.stage, id);
  if (action.kind == Kind::unshard) return gather_weights(action, id);
  transfer_streams_.send_or_receive(action, id, parts_.state.stage(action.stage).boundary(action), parts_.stream);
}

/// Host operations would wait inside their first call. Waiting here separates this time from computing.
Clock::duration Executor::wait_for_posted(const ProgramAction& next) {
  parts_.device.progress();
  if (parts_.device.kind() != DeviceKind::host) return {}; // streams wait by themselves, and the host runs ahead
  const Event posted = parts_.stream.record();
  if (posted.fired()) return {};
  const auto pending =
      std::ranges::find_if(next.waits, [this](ActionId waited) { return transfer_streams_.pending(waited); });
  position_.waits_for(pending == next.waits.end() ? kNoAction : *pending);
  const Clock::time_point began = Clock::now();
  parts_.device.wait(posted, deadline());
  position_.waits_for(kNoAction);
  return Clock::now() - began;
}

void Executor::compute(const Walk& walk, ActionId id) {
  const ProgramAction& action = walk.program.actions()[id];
  const MicrobatchViews& batch = parts_.state.batches().of(action.microbatch);
  if (action.accumulator >= 0) zero_accumulator(action.accumulator);
  const LayerCall call{.device = parts_.device,
                       .kernels = parts_.kernels,
                       .stream = parts_.stream,
                       .scratch = parts_.state.scratch(),
                       .groups = parts_.groups,
                       .samples = batch.samples,
                       .dropout = walk.step > 0,
                       .loss_gradient = loss_gradient_,
                       .scalars = parts_.state.values().on_device(),
                       .action = id,
                       .rows = {0, parts_.state.batches().shape().sequence}};
  parts_.state.stage(action.stage).run(action, call, batch, walk.search);
}

void Executor::zero_gradients() {
  if (DelayedUpdate* const updates = delayed()) updates->keep_gradients();
  if (const TensorView all = parts_.state.gradients(); !all.empty()) parts_.device.fill(all, 0, parts_.stream);
}

/// Before the first backward of a stage: another stage may have used the same memory.
void Executor::zero_accumulator(int slot) {
  const TensorView shared = parts_.state.parameters().shared_accumulator(slot);
  if (!shared.empty()) parts_.device.fill(shared, 0, parts_.stream);
}

void Executor::reduce_gradients(int stage, ActionId id) {
  reductions_.reduce(stage, transfer_streams_.begin_reduction(parts_.stream), id);
  transfer_streams_.end_reduction(id);
}

void Executor::gather_weights(const ProgramAction& action, ActionId id) {
  unshard_parameters(parts_.state.parameters(), parts_.state.stage(action.stage), action.weights, parts_.groups,
                     transfer_streams_, parts_.stream, id);
}

ValueContext Executor::value_context(ActionId id) const {
  return {parts_.device, parts_.kernels, parts_.stream, parts_.groups, parts_.state.scratch(), deadline(), id};
}

/// The host does not wait for the result, which only the device needs.
void Executor::find_norm(Walk& walk, ActionId id) {
  StepReductions& values = parts_.state.values();
  const ValueContext context = value_context(id);
  walk.norm = id;
  if (!is_recording_) send_request(walk.request);
  values.add_squares(context);
  values.collect_losses(parts_.state.batches(), context);
  values.collect_squares(context);
  values.decide(settings_.clip_grad, rules(), context);
  if (!is_recording_) walk.values = parts_.stream.record();
}

void Executor::send_request(const Request& request) {
  parts_.state.values().send_request(request ? request() : 0, parts_.state.batches(), parts_.device, parts_.stream,
                                     deadline());
}

} // namespace triax::executor
