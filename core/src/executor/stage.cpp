// SPDX-License-Identifier: Apache-2.0
// Runs a stage: collects each layer's views for the current action.
#include "executor/stage.hpp"

#include <algorithm>

#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

using schedule::Kind;
using schedule::Pool;
using schedule::ProgramAction;

int slot_of(const schedule::Slots& slots, Pool pool) {
  return slots[static_cast<std::size_t>(pool)];
}

/// Whether the tensors exist that a backward reads. R writes some of them before their backward.
bool sees_backward(Kind kind) {
  return schedule::begins_backward(kind) || kind == Kind::recompute;
}

} // namespace

TensorView Stage::of_call(const TensorView& largest, int row_dim) const {
  if (rows_ < 0 || row_dim < 0 || largest.empty()) return largest;
  Shape shape = largest.shape();
  shape[row_dim] = rows_;
  return {largest.data(), largest.dtype(), shape};
}

TensorView Stage::view(const Location& home, const ProgramAction& action, const MicrobatchViews& batch) const {
  return of_call(largest_view(home, action, batch), home.row_dim);
}

const TensorView& Stage::largest_view(const Location& home, const ProgramAction& action, const MicrobatchViews& batch) {
  static const TensorView kNone;
  switch (home.where) {
    case Location::Where::tokens:
      return batch.tokens;
    case Location::Where::targets:
      return batch.targets;
    case Location::Where::shared:
      if (!home.repeated.empty() && sees_backward(action.kind)) return home.repeated;
      if (home.input_only) return sees_backward(action.kind) ? home.shared : kNone;
      return action.kind == Kind::forward || (home.recomputed && sees_backward(action.kind)) ? home.shared : kNone;
    case Location::Where::sequence:
      return home.slots[static_cast<std::size_t>(action.microbatch)];
    case Location::Where::part:
      if (sees_backward(action.kind)) return home.repeated;
      if (action.kind != Kind::forward) return kNone;
      return home.arrived.empty() ? home.shared : input_slot(home, action.own);
    case Location::Where::pool:
      break;
  }
  const int slot = schedule::touches(action.kind, home.pool) ? slot_of(action.own, home.pool) : -1;
  if (slot >= 0) return home.slots[static_cast<std::size_t>(slot)];
  const bool is_whole = action.kind == Kind::backward || action.kind == Kind::recompute; // R before I has the slot
  return is_whole || (home.recomputed && action.kind == Kind::forward) ? home.shared : kNone;
}

const TensorView& Stage::input_slot(const Location& home, const schedule::Slots& slots) {
  if (home.where == Location::Where::part) return home.arrived[static_cast<std::size_t>(slot_of(slots, Pool::input_f))];
  return home.slots[static_cast<std::size_t>(slot_of(slots, home.pool))];
}

TensorView Stage::output(std::size_t at, std::size_t index, const ProgramAction& action,
                         const MicrobatchViews& batch) const {
  const int consumer = layers_[at].consumer[index];
  const int row_dim = layers_[at].layer->outputs()[index].row_dim;
  if (consumer < 0) return of_call(batch.result, row_dim);
  if (at + 1 < layers_.size()) return view(layers_[at + 1].in[static_cast<std::size_t>(consumer)], action, batch);
  if (sends_)
    return of_call(sent_outputs_[index][static_cast<std::size_t>(slot_of(action.own, Pool::output))], row_dim);
  const Location& home = after_->layers_.front().in[static_cast<std::size_t>(consumer)];
  return of_call(input_slot(home, action.handed), row_dim);
}

TensorView Stage::output_gradient(std::size_t at, std::size_t index, const ProgramAction& action) const {
  const int consumer = layers_[at].consumer[index];
  if (consumer < 0) return {};
  if (at + 1 < layers_.size()) return layers_[at + 1].input_gradients[static_cast<std::size_t>(consumer)];
  return output_gradients_[index][static_cast<std::size_t>(slot_of(action.own, Pool::gradient))];
}

int Stage::arriving(std::size_t input) const {
  const auto found = std::ranges::find(arriving_, static_cast<int>(input));
  return found == arriving_.end() ? -1 : static_cast<int>(found - arriving_.begin());
}

TensorView Stage::input_gradient(std::size_t at, std::size_t index, const ProgramAction& action) const {
  if (at > 0 || (!before_ && !receives_)) return layers_[at].input_gradients[index];
  const int output = arriving(index);
  if (output < 0) return {}; // tokens and targets have no gradient
  const auto which = static_cast<std::size_t>(output);
  if (receives_) return sent_gradients_[which][static_cast<std::size_t>(slot_of(action.own, Pool::input_gradient))];
  return before_->output_gradients_[which][static_cast<std::size_t>(slot_of(action.handed, Pool::gradient))];
}

void Stage::collect(std::size_t at, const ProgramAction& action, const MicrobatchViews& batch) {
  const LayerSlot& held = layers_[at];
  for (std::vector<TensorView>* views :
       {&call_views_.in, &call_views_.out, &call_views_.dout, &call_views_.din, &call_views_.stash})
    views->clear();
  for (const Location& home : held.in) call_views_.in.push_back(view(home, action, batch));
  for (const Location& home : held.stash) call_views_.stash.push_back(view(home, action, batch));
  if (action.kind == Kind::backward_weight || action.kind == Kind::recompute) return; // the gradient may be on its way
  if (action.kind == Kind::forward) {
    for (std::size_t i = 0; i < held.consumer.size(); ++i) call_views_.out.push_back(output(at, i, action, batch));
    return;
  }
  for (std::size_t i = 0; i < held.consumer.size(); ++i) call_views_.dout.push_back(output_gradient(at, i, action));
  for (std::size_t i = 0; i < held.in.size(); ++i) call_views_.din.push_back(input_gradient(at, i, action));
}

/// W reads no weights, and has no slot of them.
const std::vector<TensorView>& Stage::weights_of(const LayerSlot& held, const ProgramAction& action) {
  return held.working.at(static_cast<std::size_t>(std::max(action.weights, 0)));
}

void Stage::keep_parts(std::size_t at, const ProgramAction& action, const LayerCall& call) {
  const LayerSlot& held = layers_[at];
  InputOffload* const offload = held.begins_group ? offload_ : nullptr;
  if (offload && !offload->keeps_inputs()) return;
  const std::size_t buffer = offload ? offload->next_leaving() : 0;
  for (std::size_t i = 0; i < held.in.size(); ++i) {
    const Location& home = held.in[i];
    if (home.where != Location::Where::part) continue;
    const TensorView& kept = options_.how.on_host
                                 ? home.leaving[buffer]
                                 : home.slots[static_cast<std::size_t>(slot_of(action.own, home.pool))];
    const int part = parts_of(held.layer->inputs()[i]) > 1 ? options_.how.part : 0;
    const std::int64_t begin = kept.elements() * part;
    call.device.copy(kept, call_views_.in[i].flat().slice(0, begin, begin + kept.elements()), call.stream);
  }
  if (offload) offload->keep(index_, held.group, slot_of(action.own, Pool::stash_i));
}

void Stage::restore_inputs(std::size_t at, const ProgramAction& action, const LayerCall& call) {
  const LayerSlot& held = layers_[at];
  const std::size_t buffer =
      offload_ ? offload_->next_arriving(index_, held.group, slot_of(action.own, Pool::stash_i)) : 0;
  for (std::size_t i = 0; i < held.in.size(); ++i) {
    const Location& home = held.in[i];
    if (home.where != Location::Where::part) continue;
    const TensorView& kept = options_.how.on_host
                                 ? home.arriving[buffer]
                                 : home.slots[static_cast<std::size_t>(slot_of(action.own, home.pool))];
    if (parts_of(held.layer->inputs()[i]) == 1) {
      call.device.copy(home.repeated.flat(), kept, call.stream);
      continue;
    }
    Communicator* const tensor = call.groups.find(kTensorAxis);
    TRIAX_REQUIRE(tensor, "{} gathers its input, but has no tensor group", held.layer->name());
    tensor->wait(tensor->all_gather(kept, home.repeated.flat(), call.stream, call.action), call.stream);
  }
  if (offload_) offload_->release();
}

/// The views are those of the backward, without gradients. Outputs are the inputs of the next layer; the last has none.
void Stage::repeat_forwards(std::size_t last, const ProgramAction& action, const LayerCall& call,
                            const MicrobatchViews& batch) {
  std::size_t first = last;
  while (!layers_[first].begins_group) --first;
  restore_inputs(first, action, call);
  for (std::size_t at = first; at <= last; ++at) {
    LayerSlot& held = layers_[at];
    const std::vector<TensorView>& weights = weights_of(held, action);
    LayerCall repeated = call;
    repeated.again = at == last;
    collect(at, action, batch);
    call_views_.out.assign(held.consumer.size(), {});
    for (std::size_t i = 0; at < last && i < held.consumer.size(); ++i)
      call_views_.out[i] = output(at, i, action, batch);
    call_plugin("forward", typeid(*held.layer),
                [&] { held.layer->forward(repeated, weights, call_views_.in, call_views_.out, call_views_.stash); });
  }
}

bool Stage::recomputes_before(std::size_t at) const {
  return layers_[at].ends_group || layers_[at].cheap || !layers_[at].steps.empty();
}

void Stage::recompute_before(std::size_t at, const ProgramAction& action, const LayerCall& call,
                             const MicrobatchViews& batch) {
  if (layers_[at].ends_group) return repeat_forwards(at, action, call, batch);
  collect(at, action, batch);
  if (layers_[at].cheap) return recompute_cheaply(at, action, call);
  run_steps(at, action, call);
}

void Stage::recompute_cheaply(std::size_t at, const ProgramAction& action, const LayerCall& call) {
  const LayerSlot& held = layers_[at];
  call_plugin("recompute", typeid(*held.layer),
              [&] { held.cheap->recompute(call, weights_of(held, action), call_views_.in, call_views_.stash); });
}

/// Tensors of Life::forward_only exist while steps run, in the memory that the backward uses afterwards.
void Stage::run_steps(std::size_t at, const ProgramAction& action, const LayerCall& call) {
  const LayerSlot& held = layers_[at];
  const auto stash = held.layer->stash();
  const auto show_temporaries = [&](bool exist) {
    for (std::size_t i = 0; i < stash.size(); ++i)
      if (stash[i].life == Life::forward_only) call_views_.stash[i] = exist ? held.stash[i].shared : TensorView{};
  };
  show_temporaries(true);
  call_plugin("recompute_step", typeid(*held.layer), [&] {
    for (const int step : held.steps)
      held.offered->recompute_step(call, step, weights_of(held, action), call_views_.in, call_views_.stash);
  });
  show_temporaries(false);
}

void Stage::run_layer(std::size_t at, const ProgramAction& action, const LayerCall& call) {
  LayerSlot& held = layers_[at];
  const Kind kind = action.kind;
  const std::vector<TensorView>& weights = weights_of(held, action);
  const char* const name = kind == Kind::forward ? "forward" : "backward";
  call_plugin(name, typeid(*held.layer), [&] {
    if (kind == Kind::forward) held.layer->forward(call, weights, call_views_.in, call_views_.out, call_views_.stash);
    if (kind == Kind::backward || kind == Kind::backward_input)
      held.layer->backward_input(call, weights, call_views_.in, call_views_.dout, call_views_.din, call_views_.stash,
                                 held.accumulators);
    if (kind == Kind::backward || kind == Kind::backward_weight)
      held.layer->backward_weight(call, call_views_.in, call_views_.stash, held.accumulators);
  });
}

LayerResults Stage::results(std::size_t at, const ProgramAction& action) const {
  const LayerSlot& held = layers_[at];
  Views written;
  if (action.kind == Kind::forward) written = call_views_.out;
  if (schedule::begins_backward(action.kind)) written = call_views_.din;
  return {first_ + static_cast<int>(at), *held.layer,      action.kind, action.microbatch, written,
          weights_of(held, action),      held.accumulators};
}

void Stage::run(const ProgramAction& action, const LayerCall& call, const MicrobatchViews& batch,
                NonfiniteSearch* search) {
  TRIAX_REQUIRE(schedule::runs_layers(action.kind), "{} runs no layers", schedule::rule(action.kind).name);
  TRIAX_REQUIRE(!generates() || action.kind == Kind::forward, "{}: a stage that generates has no {}",
                schedule::action_text(action.kind, action.stage, action.microbatch), schedule::rule(action.kind).name);
  const std::size_t last = layers_.size() - 1;
  if (action.kind == Kind::recompute) {
    TRIAX_REQUIRE(recomputes_early_, "stage {} does not recompute before its gradients arrive", index_);
    return recompute_before(last, action, call, batch);
  }
  for (std::size_t i = 0; i <= last; ++i) {
    const std::size_t at = action.kind == Kind::forward ? i : last - i;
    const bool is_done = at == last && recomputes_early_; // by R
    if (schedule::begins_backward(action.kind) && recomputes_before(at) && !is_done)
      recompute_before(at, action, call, batch);
    collect(at, action, batch);
    if (action.kind == Kind::forward) keep_parts(at, action, call);
    run_layer(at, action, call);
    if (search) search->inspect(results(at, action));
  }
}

void Stage::recompute_early() {
  TRIAX_REQUIRE(recomputes_before(layers_.size() - 1), "stage {}: its last layer, {}, recomputes nothing", index_,
                last_layer().name());
  recomputes_early_ = true;
}

Views Stage::boundary(const ProgramAction& action) {
  call_views_.boundary.clear();
  const auto add_slot = [&](const Slotted& tensors, Pool pool) {
    for (const std::vector<TensorView>& of : tensors)
      call_views_.boundary.push_back(of[static_cast<std::size_t>(slot_of(action.own, pool))]);
  };
  switch (action.kind) {
    case Kind::send_f:
      for (std::size_t i = 0; i < sent_outputs_.size(); ++i)
        call_views_.boundary.push_back(
            of_call(sent_outputs_[i][static_cast<std::size_t>(slot_of(action.own, Pool::output))],
                    last_layer().outputs()[i].row_dim));
      break;
    case Kind::send_b:
      add_slot(sent_gradients_, Pool::input_gradient);
      break;
    case Kind::recv_b:
    case Kind::gather_b:
      add_slot(output_gradients_, Pool::gradient);
      break;
    case Kind::recv_f:
    case Kind::gather_f:
      for (const int input : arriving_) {
        const Location& home = layers_.front().in[static_cast<std::size_t>(input)];
        call_views_.boundary.push_back(of_call(input_slot(home, action.own), home.row_dim));
      }
      break;
    default:
      throw Error(text("{} crosses no boundary", schedule::rule(action.kind).name));
  }
  return call_views_.boundary;
}

} // namespace triax::executor
