// SPDX-License-Identifier: Apache-2.0
#include "train/rank_groups.hpp"

#include <set>
#include <utility>

#include "triax/rank_activity.hpp"
#include "triax/registration.hpp"

namespace triax::train {

RankGroups::RankGroups(const config::RunConfig& run, const Layout& layout, int rank)
    : run_(run), layout_(layout), rank_(rank) {}

void RankGroups::join(RankPlugins& plugins, Device& device, std::span<const std::vector<std::string>> axes,
                      Store& store, double timeout_s, StepTrace* trace) {
  std::set<std::string> started; // by table: axes may share a backend
  for (const std::vector<std::string>& of : axes) {
    const std::string slowest = Layout::slowest_axis(Layout::product_name(of)); // its table serves a product of axes
    CommBackend& backend = plugins.comm(slowest);
    const config::PluginChoice& choice = run_.comm.at(slowest);
    if (started.insert(choice.table).second) call_plugin("start", choice.name.c_str(), [&] { backend.start(device); });
    const Deadline deadline = deadline_in(timeout_s);
    const WaitScope waits("join", deadline, choice.name.c_str());
    Communicator& joined = add(backend.join(layout_.group(rank_, of), store, deadline), device);
    if (of.size() == 1) of_axes_.push_back(&joined);
    groups_.set(joined.group().axis,
                trace ? traced_.emplace_back(std::make_unique<TracedCommunicator>(joined, *trace)).get() : &joined);
  }
}

Communicator& RankGroups::add(std::unique_ptr<Communicator> joined, Device& device) {
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(joined));
  if (device.abort_flag().raised()) all_.back()->abort(device.abort_flag().reason());
  return *all_.back();
}

void RankGroups::register_memory(std::span<const std::span<std::byte>> blocks) {
  const ActivityScope phase(ActivityScope::Kind::engine, "registering memory");
  for (const std::unique_ptr<Communicator>& communicator : all_) {
    auto* const registration = find_extension<Registration>(*communicator);
    if (!registration) continue;
    call_plugin("add", typeid(*registration), [&] {
      for (const std::span<std::byte> block : blocks) registration->add(block.data(), block.size());
    });
  }
}

void RankGroups::abort(std::string_view why) noexcept {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Communicator>& communicator : all_) communicator->abort(why);
}

const std::string& RankGroups::plugin_of(const Group& group) const {
  return run_.comm.at(Layout::slowest_axis(group.axis)).name;
}

std::string RankGroups::waiting_for(ActionId action) const {
  for (const std::unique_ptr<Communicator>& communicator : all_) {
    const PendingCall call = communicator->pending();
    if (!call.name || call.action != action) continue;
    const Group& group = communicator->group();
    std::string others;
    for (int member = 0; member < group.size(); ++member) {
      if (member == group.group_rank) continue;
      others += text("{}{}", others.empty() ? (group.size() > 2 ? "ranks " : "rank ") : ", ",
                     group.ranks[static_cast<std::size_t>(member)]);
    }
    return text(", waiting for {} over {} with {} through {}", call.name, group.axis, others, plugin_of(group));
  }
  return {};
}

std::vector<CommStats> RankGroups::counted() const {
  std::vector<CommStats> out;
  out.reserve(all_.size());
  for (const std::unique_ptr<Communicator>& communicator : all_) out.push_back(communicator->stats());
  return out;
}

std::vector<report::GroupTraffic> RankGroups::traffic(const RecordedTraffic& recorded) const {
  std::vector<report::GroupTraffic> out;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const CommStats &stats = all_[i]->stats(), beyond = recorded.beyond(i);
    const Group& group = all_[i]->group();
    out.push_back({group.axis, plugin_of(group), stats.ops + beyond.ops, stats.bytes_out + beyond.bytes_out,
                   stats.bytes_in + beyond.bytes_in});
  }
  return out;
}

} // namespace triax::train
