// SPDX-License-Identifier: Apache-2.0
// comm-local: a communicator for ranks that are threads of one process. The backend joins groups through the store.
#include <sched.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <triax/plugin.hpp>

#include "communicator.hpp"

namespace triax::comm_local {

namespace {

constexpr std::string_view kOneProcess = "comm-local joins ranks that are threads of one process";
constexpr std::int64_t kGaveUp = std::int64_t{1} << 40; // subtracted from the count of joined members when one gives up

/// Identifies this process. The address of a hub is valid in one process only, and process ids repeat across
/// containers; hence the random token.
std::string process_text() {
  static const std::uint64_t token = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  return text("{}/{}", getpid(), token);
}

std::string publish_text(const GroupState* hub) {
  return text("{} {}", process_text(), reinterpret_cast<std::uintptr_t>(hub));
}

GroupState* hub_of(const std::string& published, const Group& group) {
  const std::size_t space = published.find(' ');
  const std::string process = published.substr(0, space);
  if (space == std::string::npos || process != process_text()) {
    throw Error(
        text("{}; rank {} is in process {}, rank {} in process {}", kOneProcess, group.ranks.front(),
             process.substr(0, process.find('/')), group.ranks[static_cast<std::size_t>(group.index)], getpid()),
        text("group {}", group.id), "use another communicator for ranks that are processes");
  }
  // The store holds text. NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<GroupState*>(std::stoull(published.substr(space + 1)));
}

class LocalBackend final : public CommBackend {
 public:
  CommTraits traits() const override {
    CommTraits traits;
    traits.order = CommTraits::Order::tagged;
    traits.send = CommTraits::Send::rendezvous;
    traits.post = CommTraits::Post::nonblocking;
    traits.reduction = CommTraits::Reduction::rank_order;
    traits.ranks = CommTraits::Ranks::same_process;
    return traits;
  }

  Support supports(const CommRequest& request) const override {
    if (request.device != DeviceKind::host) {
      return Support::no("comm-local moves host memory; the kernel set's device is {}", name_of(request.device))
          .hint("use comm-nccl or comm-ucx, or a kernel set that computes on the host");
    }
    if (!request.axes.empty() && !request.ranks_are_threads) {
      return Support::no("{}; this run's ranks are processes", kOneProcess);
    }
    return Support::yes();
  }

  void start(Device& device) override { device_ = &device; }

  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    TRIAX_REQUIRE(device_, "comm-local: join() before start()");
    const std::string key = text("comm-local/{}/{}", group.id, joins_[group.id]++);
    GroupState* shared = nullptr;
    if (group.index == 0) {
      auto made = std::make_unique<GroupState>(group);
      store.set(key, publish_text(made.get()));
      shared = made.release(); // the last release deletes it
    } else {
      shared = hub_of(published(group, store, key, deadline), group);
    }
    // A positive count gives this member a reference. Otherwise the others gave up, and the hub may be gone.
    const std::string joined = key + "/joined";
    if (store.add(joined, 1) <= 0) {
      throw Error("the other ranks stopped waiting for this rank", text("group {}", group.id),
                  "start the ranks together");
    }
    HubRef hub(shared);
    if (hub->ranks() != group.ranks) {
      hub->abort(text("group {}: the ranks differ from those on rank {}", group.id, hub->rank(0)));
      throw Error(hub->reason());
    }
    hub->arrive(group.index);
    try {
      meet(*hub, deadline);
    } catch (const std::exception& error) {
      close(*hub, store, joined, group, error.what());
      throw;
    }
    return std::make_unique<LocalCommunicator>(group, std::move(hub), *device_);
  }

 private:
  static std::string published(const Group& group, Store& store, const std::string& key, Deadline deadline) {
    try {
      return store.get(key, deadline);
    } catch (const Error& error) {
      throw Error(text("rank {} did not join: {}", group.ranks.front(), error.what()), text("group {}", group.id));
    }
  }

  void meet(GroupState& hub, Deadline deadline) {
    for (int member = 0; member < hub.size(); ++member) {
      while (!hub.arrived(member)) {
        if (hub.aborted()) throw Error(hub.reason());
        device_->abort_flag().check();
        if (Clock::now() >= deadline) {
          throw Error(text("timed out waiting for rank {}", missing(hub)), text("group {}", hub.id()),
                      "the ranks may be slow, dead, or in another group: see their logs");
        }
        if (!device_->progress()) sched_yield();
      }
    }
  }

  static std::string missing(GroupState& hub) {
    std::string list;
    for (int member = 0; member < hub.size(); ++member) {
      if (!hub.arrived(member)) list += (list.empty() ? "" : ", ") + std::to_string(hub.rank(member));
    }
    return list;
  }

  /// The first member that gives up also releases the references of the members that have not joined; their join()
  /// fails.
  static void close(GroupState& hub, Store& store, const std::string& joined, const Group& group,
                    std::string_view why) {
    hub.abort(text("rank {} could not join: {}", hub.rank(group.index), why));
    const std::int64_t came = store.add(joined, -kGaveUp) + kGaveUp;
    if (came > 0 && came < hub.size()) hub.release(hub.size() - static_cast<int>(came));
  }

  Device* device_ = nullptr;
  std::map<std::string, int> joins_; // joins per group id; a group can be joined again
};

} // namespace

} // namespace triax::comm_local

TRIAX_PLUGIN(triax::CommBackend, triax::comm_local::LocalBackend, "comm-local", "0.1.0",
             "ranks that are threads of one process, over shared memory", nullptr)
