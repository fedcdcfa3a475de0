// SPDX-License-Identifier: Apache-2.0
// comm-local: a communicator for ranks that are threads of one process. The backend joins groups through the store.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <triax/plugin.hpp>
#include <triax/rendezvous.hpp>

#include "local_communicator.hpp"

namespace triax::comm_local {

namespace {

constexpr std::string_view kOneProcess = "comm-local joins ranks that are threads of one process";

/// The values that a member publishes, in this order.
enum Value : std::size_t { process_id, token, number };

/// Identifies this process: process ids repeat across containers.
std::string process_token() {
  static const std::uint64_t token = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  return std::to_string(token);
}

/// Jobs of one process may have groups of the same name.
std::string next_number() {
  static std::atomic<std::uint64_t> next{0};
  return std::to_string(++next);
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
    Rendezvous rendezvous("comm-local", 1, {group, store, *device_, deadline});
    return rendezvous.run([&] {
      rendezvous.publish({std::to_string(getpid()), process_token(), next_number()});
      const std::vector<Rendezvous::Entry> members = rendezvous.collect();
      check_process(members, rendezvous, group.group_rank);
      const std::string key = text("{} {}", rendezvous.key(), members.front()[Value::number]);
      std::shared_ptr<GroupState> state = GroupState::shared(key, group);
      // Until all members have the state, none may leave: the state would be lost with the last of those who have it.
      rendezvous.reach("shared");
      for (std::string missing; !(missing = rendezvous.missing("shared")).empty(); rendezvous.poll())
        if (rendezvous.expired()) throw rendezvous.timeout(missing);
      return std::make_unique<LocalCommunicator>(group, std::move(state), *device_);
    });
  }

 private:
  static void check_process(const std::vector<Rendezvous::Entry>& members, const Rendezvous& rendezvous, int own) {
    for (std::size_t member = 0; member < members.size(); ++member) {
      const Rendezvous::Entry& entry = members[member];
      if (entry[Value::token] == process_token()) continue;
      throw Error(
          text("{}; {} is in process {}, {} in process {}", kOneProcess, rendezvous.rank_text(static_cast<int>(member)),
               entry[Value::process_id], rendezvous.rank_text(own), getpid()),
          rendezvous.where(), "use another communicator for ranks that are processes");
    }
  }

  Device* device_ = nullptr;
};

} // namespace

} // namespace triax::comm_local

TRIAX_PLUGIN(triax::CommBackend, triax::comm_local::LocalBackend, "comm-local", "0.1.0",
             "ranks that are threads of one process, over shared memory", nullptr)
