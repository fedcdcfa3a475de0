// SPDX-License-Identifier: Apache-2.0
// Runs programs.
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
  if (parts_.training.has(Kind::opt_step))
    call_plugin("prepare", typeid(parts_.optimizer), [&] { parts_.optimizer.prepare(parts_.state.shards()); });
  for (const std::unique_ptr<Stage>& stage : parts_.state.stages())
    shards_[stage->index()] = parts_.state.shards(stage->index());
  StepScalars first;
  first.loss_scale = static_cast<float>(loss_scale_);
  first.hysteresis = rules().hysteresis;
  parts_.state.values().start(first, parts_.device, parts_.stream, deadline());
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
    zero_gradients();
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

/// All values are on the host by now.
StepOutcome Executor::outcome(const Walk& walk, double lr) {
  const StepReductions& values = parts_.state.values();
  StepOutcome out;
  const std::int64_t samples = parts_.state.batches().shape().global();
  out.loss = values.loss_sum(samples) / static_cast<double>(parts_.state.batches().shape().tokens());
  out.request = values.largest_request();
  out.grad_norm = values.decided().grad_norm;
  out.loss_scale = std::exchange(loss_scale_, static_cast<double>(values.decided().loss_scale));
  out.next_loss_scale = loss_scale_;
  const Clock::duration elapsed = walk.last_ended - walk.first_began;
  if (elapsed.count() > 0)
    out.bubble_rate = static_cast<double>(walk.idle.count()) / static_cast<double>(elapsed.count());
  const std::string loss = values.nonfinite_loss(first_sample(walk.step), samples);
  if (values.decided().skip != 0) out.skipped = loss.empty() ? values.nonfinite_gradient() : loss;
  if (!loss.empty() || (!out.skipped.empty() && !settings_.loss_scale))
    out.nonfinite.emplace(out.skipped, location(walk, walk.norm, {}),
                          text("the weights are still those of step {}; use {}a smaller optimizer.lr (this step's is "
                               "{}), a longer lr.warmup_steps, or train.clip_grad",
                               walk.step - 1, smaller_decay(lr), static_cast<float>(lr)));
  count_skipped(walk, out, lr);
  return out;
}

/// A run that only skips steps must end.
void Executor::count_skipped(const Walk& walk, const StepOutcome& outcome, double lr) {
  const bool at_min = outcome.loss_scale <= static_cast<double>(rules().min);
  skipped_at_min_ = at_min && !outcome.skipped.empty() ? skipped_at_min_ + 1 : 0;
  if (skipped_at_min_ < kMaxSkipped) return;
  const bool scales = settings_.loss_scale.has_value();
  const std::string at_scale = scales ? text(" at the smallest loss scale, {}", rules().min) : "";
  const std::string other_scale =
      scales ? text(", or a smaller loss_scale.{}", rules().window > 0 ? "min" : "initial") : "";
  throw NonfiniteError(
      Error(text("{}, in {} steps one after another{}", outcome.skipped, kMaxSkipped, at_scale),
            location(walk, walk.norm, {}),
            text("the weights are still those of step {}; use {}{}a smaller optimizer.lr{}", walk.step - 1,
                 smaller_decay(lr), scales ? "train.precision bf16 or fp32, " : "", other_scale)));
}

/// Decay multiplies a weight by 1 - lr x weight_decay per step. If that is below -1, the weight grows until it
/// overflows.
std::string Executor::smaller_decay(double lr) const {
  const double product = lr * settings_.weight_decay;
  if (product <= 2) return {};
  return text("a smaller optimizer.weight_decay ({}; multiplied by the learning rate it is {}, above 2), ",
              settings_.weight_decay, static_cast<float>(product));
}

const LossScaling& Executor::rules() const {
  static constexpr LossScaling kNone;
  return settings_.loss_scale ? settings_.loss_scale->rules : kNone;
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

/// What follows on the stream is ordered behind the optimizer's work, so the host waits only for the values that it
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
}

void Executor::walk_list(Walk& walk) {
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
      if (!walk.search) step_optimizer(action.stage, id);
      break;
    case Kind::gather_param:
      if (!walk.search) gather_parameters(parts_.state, action.stage, parts_.groups, parts_.device, parts_.stream, id);
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

void Executor::step_optimizer(int stage, ActionId id) {
  const std::vector<ParameterShard>& shards = shards_.at(stage);
  if (shards.empty()) return;
  const StepArgs step{.scalars = parts_.state.values().on_device(),
                      .weight_decay = settings_.weight_decay,
                      .groups = parts_.groups,
                      .scratch = parts_.state.optimizer_scratch(),
                      .op = {parts_.stream, parts_.state.scratch()},
                      .action = id};
  call_plugin("step", typeid(parts_.optimizer), [&] { parts_.optimizer.step(shards, step, parts_.kernels); });
}

} // namespace triax::executor
