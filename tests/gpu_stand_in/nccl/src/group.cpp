// SPDX-License-Identifier: Apache-2.0
#include "group.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>

namespace triax::gpu_stand_in {

namespace {

using Clock = std::chrono::steady_clock;

struct Group {
  std::vector<Request> requests;
  int device = 0;
  bool is_captured = false;
  bool is_concurrent = true;
  std::vector<CommunicatorPtr> communicators;

  const Communicator& first() const { return *communicators.front(); }
  std::string text() const { return requests.front().name + " of " + first().text(); }
};
using GroupPtr = std::shared_ptr<const Group>;

// Groups of a device that are not done, in the order of the host's calls. NCCL's kernels take the GPU one after the
// other; only those of communicators with few blocks run beside each other.
class DeviceQueue {
 public:
  void add(const GroupPtr& group) {
    std::lock_guard lock(mutex_);
    groups_.push_back(group);
  }
  void remove(const GroupPtr& group) {
    std::lock_guard lock(mutex_);
    groups_.remove(group);
  }
  // The first group that this one waits behind, or null.
  GroupPtr blocker_of(const Group& group) const {
    std::lock_guard lock(mutex_);
    for (const GroupPtr& earlier : groups_) {
      if (earlier.get() == &group) return nullptr;
      if (!group.is_concurrent && !earlier->is_concurrent) return earlier;
      for (const CommunicatorPtr& each : group.communicators) {
        if (std::ranges::find(earlier->communicators, each) != earlier->communicators.end()) return earlier;
      }
    }
    return nullptr;
  }
  std::vector<GroupPtr> behind(const Group& group) const {
    std::lock_guard lock(mutex_);
    std::vector<GroupPtr> later(groups_.begin(), groups_.end());
    const auto own = std::ranges::find_if(later, [&](const GroupPtr& each) { return each.get() == &group; });
    later.erase(later.begin(), own == later.end() ? own : own + 1);
    return later;
  }

 private:
  mutable std::mutex mutex_;
  std::list<GroupPtr> groups_;
};

DeviceQueue& queue_of(int device) {
  static std::mutex mutex;
  static auto& queues = *new std::map<int, DeviceQueue>;
  std::lock_guard lock(mutex);
  return queues[device];
}

class GroupRun {
 public:
  explicit GroupRun(GroupPtr group) : group_(std::move(group)), begun_(Clock::now()), checked_(begun_) {}
  ~GroupRun() { finish(); }

  bool poll() {
    // As on a GPU: the abort of another member ends nothing here, or what follows would read what was never received.
    const bool aborted = std::ranges::any_of(group_->communicators, [](const auto& each) { return !!each->aborted; });
    if (aborted || run()) {
      finish();
      return true;
    }
    check_progress();
    return false;
  }

 private:
  // Requests of which one runs after the other.
  struct Lane {
    std::vector<const Request*> requests;
    std::size_t next = 0;
    std::unique_ptr<Operation> running{};
  };

  bool run() {
    if (!started_ && !start()) return false;
    bool all_done = true;
    for (auto& [key, lane] : lanes_) all_done &= run_lane(lane);
    return all_done;
  }

  static bool run_lane(Lane& lane) {
    for (;;) {
      if (!lane.running) {
        if (lane.next == lane.requests.size()) return true;
        lane.running = make_operation(*lane.requests[lane.next++]);
      }
      if (!lane.running->poll()) return false;
      lane.running = nullptr;
    }
  }

  bool start() {
    if (!group_->is_captured && queue_of(group_->device).blocker_of(*group_)) return false;
    for (std::size_t n = 0; n < group_->communicators.size(); ++n) {
      if (!group_->communicators[n]->is_busy.exchange(true)) continue;
      while (n-- > 0) group_->communicators[n]->is_busy = false;
      return false;
    }
    for (const CommunicatorPtr& each : group_->communicators) each->own().waits_for = 0;
    // Collectives of a communicator in order; sends and receives in order for each peer and direction.
    for (const Request& each : group_->requests) {
      const int direction = each.is_collective ? 0 : each.sends ? 1 : 2;
      lanes_[{each.communicator.get(), direction, each.peer}].requests.push_back(&each);
    }
    return started_ = true;
  }

  void finish() {
    if (finished_) return;
    finished_ = true;
    if (started_) {
      for (const CommunicatorPtr& each : group_->communicators) each->is_busy = false;
    }
    if (group_->is_captured) return;
    queue_of(group_->device).remove(group_);
    for (const CommunicatorPtr& each : group_->communicators) --each->calls;
  }

  void check_progress() {
    const auto now = Clock::now();
    if (now - checked_ < std::chrono::milliseconds(50)) return;
    checked_ = now;
    for (const CommunicatorPtr& each : group_->communicators) each->check_members();
    const double waited = std::chrono::duration<double>(now - begun_).count();
    if (started_ && !group_->is_captured) find_deadlock(waited);
    late_.check(group_->text(), [this] { return missing(); });
  }

  // Two members wait for each other, because they use two communicators in different orders.
  void find_deadlock(double waited) {
    const std::vector<GroupPtr> later = queue_of(group_->device).behind(*group_);
    for (const GroupPtr& each : later) {
      for (const CommunicatorPtr& c : each->communicators) {
        if (!c->is_busy) c->own().waits_for = group_->first().identity();
      }
    }
    if (waited < 1) return;
    for (const CommunicatorPtr& own : group_->communicators) {
      for (int n = 0; n < own->size; ++n) {
        const std::uint64_t behind = own->segment.load()->members[n].waits_for;
        if (n == own->rank || behind == 0) continue;
        const CommunicatorPtr other = find_communicator_of(group_->device, behind);
        if (!other || other == own || other->own().waits_for != own->identity()) continue;
        report_deadlock(*own, *other, n);
      }
    }
  }
  [[noreturn]] void report_deadlock(Communicator& own, Communicator& other, int rank) {
    const std::string why = "deadlock: GPU " + std::to_string(group_->device) + " calls " + own.text() + " before " +
                            other.text() + "; rank " + std::to_string(rank) + " of " + own.name + " calls " +
                            other.name + " before it. Call communicators in the same order on all ranks";
    own.fail(why);
    other.segment.load()->failed = 1; // the rank that waits in it learns of the failure, too
    throw StreamError(cudaErrorLaunchTimeout, why);
  }

  std::string missing() const {
    std::string text;
    for (const Request& each : group_->requests) {
      const Communicator& c = *each.communicator;
      for (int n = 0; n < c.size && each.is_collective; ++n) {
        if (c.segment.load()->members[n].arrived >= c.barriers) continue;
        text += "; rank " + std::to_string(n) + " of " + c.name + " has not called it";
      }
      if (!each.is_collective) text += "; " + each.name + " with rank " + std::to_string(each.peer) + " is not done";
    }
    return text;
  }

  const GroupPtr group_;
  const Clock::time_point begun_;
  Clock::time_point checked_;
  std::map<std::tuple<const Communicator*, int, int>, Lane> lanes_;
  WaitReport late_;
  bool started_ = false, finished_ = false;
};

struct Pending {
  int depth = 0;
  std::vector<std::pair<cudaStream_t, Group>> groups; // one for each stream
};
thread_local Pending pending;

// As long as a graph holds a captured group, its communicators count it.
std::shared_ptr<const Group> shared_group(Group&& made) {
  if (!made.is_captured) return std::make_shared<const Group>(std::move(made));
  for (const CommunicatorPtr& each : made.communicators) ++each->captured;
  return {new const Group(std::move(made)), [](const Group* group) {
            for (const CommunicatorPtr& each : group->communicators) --each->captured;
            delete group;
          }};
}

void submit(cudaStream_t stream, Group&& made) {
  made.is_captured = is_capturing(stream);
  const auto group = shared_group(std::move(made));
  if (!group->is_captured) {
    for (const CommunicatorPtr& each : group->communicators) ++each->calls;
    queue_of(group->device).add(group);
  }
  const cudaError_t error = enqueue(stream, {group->requests.front().name, [group]() -> Poll {
                                               auto run = std::make_shared<GroupRun>(group);
                                               return [run] { return run->poll(); };
                                             }});
  if (error == cudaSuccess) return;
  if (!group->is_captured) {
    queue_of(group->device).remove(group);
    for (const CommunicatorPtr& each : group->communicators) --each->calls;
  }
  throw NcclError(ncclUnhandledCudaError, std::string("the stream does not take the call: ") + cudaGetErrorName(error));
}

void flush() {
  auto groups = std::move(pending.groups);
  pending.groups.clear();
  for (auto& [stream, group] : groups) submit(stream, std::move(group));
}

} // namespace

void begin_group() {
  ++pending.depth;
}

void end_group() {
  if (pending.depth == 0) throw NcclError(ncclInvalidUsage, "ncclGroupStart() was not called");
  if (--pending.depth == 0) flush();
}

void add_to_group(Request request, cudaStream_t stream) {
  Communicator& c = *request.communicator;
  if (device_of(stream) != c.device) {
    throw NcclError(ncclInvalidArgument, "the stream is not one of GPU " + std::to_string(c.device) + ": " + c.text());
  }
  auto at = std::ranges::find_if(pending.groups, [&](const auto& each) { return each.first == stream; });
  if (at == pending.groups.end()) at = pending.groups.insert(at, {stream, Group{{}, c.device, false, true, {}}});
  Group& group = at->second;
  group.is_concurrent &= c.is_concurrent;
  if (std::ranges::find(group.communicators, request.communicator) == group.communicators.end()) {
    group.communicators.push_back(request.communicator);
  }
  group.requests.push_back(std::move(request));
  if (pending.depth == 0) flush();
}

} // namespace triax::gpu_stand_in
