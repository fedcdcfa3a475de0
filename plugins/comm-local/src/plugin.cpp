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
constexpr std::int64_t kJoinFailed = std::int64_t{1}
                                     << 40; // subtracted from the count of joined members when one gives up

/// Identifies this process. The address of a group_state is valid in one process only, and process ids repeat across
/// containers; hence the random token.
std::string process_text() {
  static const std::uint64_t token = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  return text("{}/{}", getpid(), token);
}

std::string publish_text(const GroupState* group_state) {
  return text("{} {}", process_text(), reinterpret_cast<std::uintptr_t>(group_state));
}

GroupState* group_state_of(const std::string& published, const Group& group) {
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

  Refusals supports(const CommRequest& request) const override {
    Refusals out;
    if (request.device != DeviceKind::host)
      out.add(make_refusal(ErrorCode::kUnsupported, {}, "comm-local moves host memory; the kernel set's device is {}",
                           name_of(request.device))
                  .with_hint("use comm-nccl or comm-ucx, or a kernel set that computes on the host"));
    if (!request.axes.empty() && !request.ranks_are_threads)
      out.add(make_refusal(ErrorCode::kUnsupported, {}, "{}; this run's ranks are processes", kOneProcess));
    return out;
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
      shared = group_state_of(published(group, store, key, deadline), group);
    }
    // A positive count gives this member a reference. Otherwise the others have failed to join, and the group_state may
    // be gone.
    const std::string joined = key + "/joined";
    if (store.add(joined, 1) <= 0) {
      throw Error("the other ranks stopped waiting for this rank", text("group {}", group.id),
                  "start the ranks together");
    }
    GroupStateRef group_state(shared);
    if (group_state->ranks() != group.ranks) {
      group_state->abort(text("group {}: the ranks differ from those on rank {}", group.id, group_state->rank(0)));
      throw Error(group_state->reason());
    }
    group_state->arrive(group.index);
    try {
      meet(*group_state, deadline);
    } catch (const std::exception& error) {
      close(*group_state, store, joined, group, error.what());
      throw;
    }
    return std::make_unique<LocalCommunicator>(group, std::move(group_state), *device_);
  }

 private:
  static std::string published(const Group& group, Store& store, const std::string& key, Deadline deadline) {
    try {
      return store.get(key, deadline);
    } catch (const Error& error) {
      throw Error(text("rank {} did not join: {}", group.ranks.front(), error.what()), text("group {}", group.id));
    }
  }

  void meet(GroupState& group_state, Deadline deadline) {
    for (int member = 0; member < group_state.size(); ++member) {
      while (!group_state.arrived(member)) {
        if (group_state.aborted()) throw Error(group_state.reason());
        device_->abort_flag().check();
        if (Clock::now() >= deadline) {
          throw Error(text("timed out waiting for rank {}", missing(group_state)), text("group {}", group_state.id()),
                      "the ranks may be slow, dead, or in another group: see their logs");
        }
        if (!device_->progress()) sched_yield();
      }
    }
  }

  static std::string missing(GroupState& group_state) {
    std::string list;
    for (int member = 0; member < group_state.size(); ++member) {
      if (!group_state.arrived(member)) list += (list.empty() ? "" : ", ") + std::to_string(group_state.rank(member));
    }
    return list;
  }

  /// The first member that gives up also releases the references of the members that have not joined; their join()
  /// fails.
  static void close(GroupState& group_state, Store& store, const std::string& joined, const Group& group,
                    std::string_view why) {
    group_state.abort(text("rank {} could not join: {}", group_state.rank(group.index), why));
    const std::int64_t came = store.add(joined, -kJoinFailed) + kJoinFailed;
    if (came > 0 && came < group_state.size()) group_state.release(group_state.size() - static_cast<int>(came));
  }

  Device* device_ = nullptr;
  std::map<std::string, int> joins_; // joins per group id; a group can be joined again
};

} // namespace

} // namespace triax::comm_local

TRIAX_PLUGIN(triax::CommBackend, triax::comm_local::LocalBackend, "comm-local", "0.1.0",
             "ranks that are threads of one process, over shared memory", nullptr)
