// SPDX-License-Identifier: Apache-2.0
#include "executor/input_offload.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

using schedule::Kind;

/// A captured step can wait only for events of the same capture, so one that is complete is left out.
void wait_for(Stream& stream, const Event& event) {
  if (event.state()) stream.wait(event);
}

} // namespace

InputOffload::InputOffload(Device& device, Stream& compute, std::vector<HostedStage> stages,
                           const schedule::Program& training)
    : device_(device),
      compute_(compute),
      copies_(device.make_stream("activations to and from the host")),
      stages_(std::move(stages)),
      training_(training) {
  list_uses(training);
}

const HostedStage* InputOffload::find(int stage) const {
  const auto found = std::ranges::find(stages_, stage, &HostedStage::stage);
  return found == stages_.end() ? nullptr : &*found;
}

/// R uses the last group of its stage, and B or I the others, from the last to the first.
void InputOffload::list_uses(const schedule::Program& training) {
  std::map<std::tuple<int, std::size_t, int>, std::size_t> keeps; // the last one into each slot
  std::size_t count = 0;
  for (const schedule::ProgramAction& action : training.actions()) {
    if (!schedule::runs_layers(action.kind)) continue;
    const HostedStage* const of = find(action.stage);
    if (!of || of->groups.empty()) continue;
    const int slot = action.own[static_cast<std::size_t>(schedule::Pool::stash_i)];
    const std::size_t groups = of->groups.size();
    const auto use = [&](std::size_t group) {
      uses_.push_back({action.stage, group, slot, keeps.at({action.stage, group, slot})});
    };
    if (action.kind == Kind::forward)
      for (std::size_t group = 0; group < groups; ++group) keeps[{action.stage, group, slot}] = count++;
    if (action.kind == Kind::recompute) use(groups - 1);
    if (schedule::begins_backward(action.kind))
      for (std::size_t group = training.recomputes(action.stage) ? groups - 1 : groups; group-- > 0;) use(group);
  }
}

void InputOffload::begin(const schedule::Program& program) {
  is_active_ = &program == &training_ && !uses_.empty();
  kept_ = fetched_ = released_ = 0;
  left_ = arrived_ = read_ = {};
}

const HostedGroup& InputOffload::group_of(int stage, std::size_t group) const {
  const HostedStage* const of = find(stage);
  TRIAX_REQUIRE(of && group < of->groups.size(), "stage {} has no inputs on the host for group {}", stage, group);
  return of->groups[group];
}

std::size_t InputOffload::next_leaving() {
  const std::size_t buffer = kept_ % kHostCopyBuffers;
  wait_for(compute_, left_[buffer]);
  return buffer;
}

void InputOffload::keep(int stage, std::size_t group, int slot) {
  const std::size_t buffer = kept_ % kHostCopyBuffers;
  copies_->wait(compute_.record());
  for (const HostedInput& input : group_of(stage, group))
    device_.download(input.slots[static_cast<std::size_t>(slot)], input.leaving[buffer], *copies_);
  left_[buffer] = copies_->record();
  ++kept_;
  fetch_ahead();
}

void InputOffload::fetch_ahead() {
  while (fetched_ < uses_.size() && fetched_ < released_ + kHostCopyBuffers && uses_[fetched_].kept < kept_) {
    const Use& use = uses_[fetched_];
    const std::size_t buffer = fetched_ % kHostCopyBuffers;
    wait_for(*copies_, read_[buffer]);
    for (const HostedInput& input : group_of(use.stage, use.group))
      device_.upload(input.arriving[buffer], input.slots[static_cast<std::size_t>(use.slot)], *copies_);
    arrived_[buffer] = copies_->record();
    ++fetched_;
  }
}

std::size_t InputOffload::next_arriving(int stage, std::size_t group, int slot) {
  const bool is_next = released_ < fetched_ && uses_[released_].stage == stage && uses_[released_].group == group &&
                       uses_[released_].slot == slot;
  TRIAX_REQUIRE(is_next, "the inputs of group {} of stage {} are recomputed out of the program's order", group, stage);
  const std::size_t buffer = released_ % kHostCopyBuffers;
  wait_for(compute_, arrived_[buffer]);
  return buffer;
}

void InputOffload::release() {
  read_[released_ % kHostCopyBuffers] = compute_.record();
  ++released_;
  fetch_ahead();
}

} // namespace triax::executor
