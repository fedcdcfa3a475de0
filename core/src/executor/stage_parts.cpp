// SPDX-License-Identifier: Apache-2.0
// Lists parts of a stage's memory: for reports, and the inputs that are kept on the host.
#include <map>

#include "executor/stage.hpp"

namespace triax::executor {

namespace {

/// "block" of "block 12"
std::string kind_of(std::string_view layer) {
  const std::size_t end = layer.find_last_not_of("0123456789 ");
  return std::string(layer.substr(0, end == std::string_view::npos ? layer.size() : end + 1));
}

/// Adds a slot of `views`, which have one size, to the memory for that number of microbatches.
void add_slots(std::map<int, std::size_t>& bytes_by_slots, const std::vector<TensorView>& views) {
  if (!views.empty()) bytes_by_slots[static_cast<int>(views.size())] += Arena::aligned(views.front().bytes());
}

} // namespace

HostedStage Stage::hosted_stage() const {
  HostedStage out{index_, {}};
  for (const LayerSlot& held : layers_) {
    if (!held.begins_group || !options_.how.on_host) continue;
    HostedGroup& group = out.groups.emplace_back();
    for (const Location& home : held.in)
      if (home.where == Location::Where::part) group.push_back({home.slots, home.leaving, home.arriving});
  }
  return out;
}

std::vector<ActivationPart> Stage::activation_parts() const {
  std::vector<ActivationPart> out;
  const auto add = [&out](const std::string& what, const std::map<int, std::size_t>& bytes_by_slots) {
    for (const auto& [slots, bytes] : bytes_by_slots) out.push_back({what, 1, slots, bytes});
  };
  for (const LayerSlot& held : layers_) {
    std::map<int, std::size_t> kept;
    for (const std::vector<Location>* homes : {&held.in, &held.stash})
      for (const Location& home : *homes) {
        const bool is_on_host = home.where == Location::Where::part && options_.how.on_host;
        if (!is_on_host) add_slots(kept, home.slots);
        add_slots(kept, home.arrived);
      }
    add(kind_of(held.layer->name()), kept);
  }
  std::map<int, std::size_t> moved;
  for (const Slotted* of : {&output_gradients_, &sent_outputs_, &sent_gradients_})
    for (const std::vector<TensorView>& slots : *of) add_slots(moved, slots);
  add("transfers", moved);
  return out;
}

} // namespace triax::executor
