// SPDX-License-Identifier: Apache-2.0
#include "fake_communicators.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "triax/text.hpp"

namespace triax::test::fake {

namespace {

Comm* make_comm() {
  FakeWorld& world = FakeWorld::get();
  world.comms.push_back(std::make_unique<Comm>());
  Comm* comm = world.comms.back().get();
  comm->process = here.process.rank;
  comm->polls = world.rules.polls;
  ++world.count.communicators;
  ++world.count.alive;
  return comm;
}

/// Call it when all members have called the split: members of one color become a clique.
void make_parts(Clique& clique, int number) {
  const auto& given = clique.splits[number];
  std::map<int, std::vector<std::pair<int, int>>> members; // by color: key, member
  for (std::size_t member = 0; member < given.size(); ++member)
    if (given[member].first >= 0)
      members[given[member].first].emplace_back(given[member].second, static_cast<int>(member));
  for (auto& [color, list] : members) {
    std::ranges::sort(list);
    Clique& part = *clique.parts[{number, color}];
    std::vector<Comm*> ordered;
    for (const auto& [key, member] : list) {
      Comm* comm = part.members[static_cast<std::size_t>(member)]; // until now by the member of the parent
      comm->member = static_cast<int>(ordered.size());
      ordered.push_back(comm);
    }
    part.members = ordered;
  }
}

bool split_done(const Comm& comm) {
  const auto& list = comm.clique->splits[comm.split_calls - 1];
  return std::ranges::find(list, kNotYet) == list.end();
}

/// Runs at the end of a split, as NCCL's own thread does: writes the child to the memory that the caller passed.
void hand_out(Comm& comm) {
  comm.splitting = false;
  if (comm.guaranteed) *comm.guaranteed = comm.child;
  comm.guaranteed = nullptr;
}

bool all_leave(const Clique& clique) {
  return std::ranges::all_of(
      clique.members, [](const Comm* member) { return !member || member->finalized || member->ended || member->dead; });
}

void end(Comm& comm) {
  FakeWorld& world = FakeWorld::get();
  comm.ended = true;
  --world.count.alive;
  world.changed.notify_all();
}

} // namespace

/// Returns null, with the result, if the call is not allowed.
Comm* usable(ncclComm_t given, const char* call, ncclResult_t& result) {
  FakeWorld& world = FakeWorld::get();
  Comm* comm = of(given);
  result = ncclInvalidArgument;
  if (!comm || comm->ended) {
    world.violated(text("{} on a communicator that has ended", call));
    return nullptr;
  }
  if (!comm->made || comm->waiting || comm->splitting || comm->finalized) {
    world.violated(text("{} on a communicator that is {}", call, comm->finalized ? "being ended" : "in progress"));
    return nullptr;
  }
  result = comm->error;
  return comm->error == ncclSuccess ? comm : nullptr;
}

bool injected(const char* call, Comm* comm, ncclResult_t& result) {
  FakeWorld& world = FakeWorld::get();
  const auto found = world.next.find({here.process.rank, call});
  if (found == world.next.end()) return false;
  result = found->second.result;
  world.last_error = found->second.why;
  if (comm) comm->last_error = found->second.why;
  world.next.erase(found);
  return true;
}

ncclResult_t comm_init_rank_config(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  if (injected("ncclCommInitRankConfig", nullptr, result)) return result;
  if (config->blocking != 0) world.violated("a blocking communicator");
  std::shared_ptr<Clique>& clique = world.cliques[id.internal];
  if (!clique) clique = std::make_shared<Clique>();
  if (clique->members.empty()) clique->members.resize(static_cast<std::size_t>(ranks));
  if (clique->members.size() != static_cast<std::size_t>(ranks) || clique->members[static_cast<std::size_t>(rank)]) {
    world.violated(text("member {} of {} joins a communicator that has it, or is of another size", rank, ranks));
    return ncclInvalidArgument;
  }
  Comm* comm = make_comm();
  comm->clique = clique;
  comm->member = rank;
  clique->members[static_cast<std::size_t>(rank)] = comm;
  const std::string& gpu = world.gpus[comm->process];
  for (Comm* other : clique->members)
    if (other && other != comm && world.gpus[other->process] == gpu && !world.have_host_id.contains(comm->process))
      for (Comm* each : {comm, other}) FakeWorld::fail(each, ncclInvalidUsage, "Duplicate GPU detected");
  *made = comm;
  return ncclInProgress;
}

ncclResult_t comm_split(ncclComm_t given, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  if (injected("ncclCommSplit", of(given), result)) return result;
  Comm* comm = usable(given, "ncclCommSplit", result);
  if (!comm) return result;
  if (config->blocking != 0) world.violated("a blocking communicator");
  Clique& clique = *comm->clique;
  const int number = comm->split_calls++;
  auto& list = clique.splits[number];
  if (list.empty()) list.assign(clique.members.size(), kNotYet);
  list[static_cast<std::size_t>(comm->member)] = {color, key};
  *made = nullptr;
  if (color != NCCL_SPLIT_NOCOLOR) {
    std::shared_ptr<Clique>& part = clique.parts[{number, color}];
    if (!part) part = std::make_shared<Clique>();
    part->members.resize(clique.members.size());
    Comm* child = make_comm();
    child->clique = part;
    part->members[static_cast<std::size_t>(comm->member)] = child;
    comm->child = child;
    comm->guaranteed = made;
    ++world.count.splits;
  }
  comm->splitting = true;
  comm->split_polls = world.rules.split_polls;
  if (std::ranges::find(list, kNotYet) == list.end()) make_parts(clique, number);
  return ncclInProgress;
}

ncclResult_t comm_get_async_error(ncclComm_t given, ncclResult_t* state) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  Comm* comm = of(given);
  if (!comm || comm->ended) {
    world.violated("ncclCommGetAsyncError on a communicator that has ended");
    return ncclInvalidArgument;
  }
  *state = comm->error;
  if (comm->error != ncclSuccess) return ncclSuccess;
  if (!comm->made) comm->made = comm->clique->complete() && comm->polls-- <= 0;
  if (comm->splitting && split_done(*comm) && comm->split_polls-- <= 0) hand_out(*comm);
  if (comm->waiting && connected(*comm->waiting)) launch(std::exchange(comm->waiting, nullptr));
  const bool leaving = comm->finalized && !(is_over(comm->last) && all_leave(*comm->clique));
  if (!comm->made || comm->splitting || comm->waiting || leaving) *state = ncclInProgress;
  if (comm->error != ncclSuccess) *state = comm->error; // of a kernel that was just launched
  return ncclSuccess;
}

ncclResult_t comm_finalize(ncclComm_t given) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  Comm* comm = usable(given, "ncclCommFinalize", result);
  if (!comm) return result;
  comm->finalized = true;
  return ncclInProgress;
}

ncclResult_t comm_destroy(ncclComm_t given) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  Comm* comm = of(given);
  if (comm->ended || !comm->finalized || !is_over(comm->last) || !all_leave(*comm->clique)) {
    world.violated("ncclCommDestroy on a communicator that has ended, or whose calls have not");
    return ncclInvalidUsage;
  }
  if (comm->blocks > 0) world.violated("a communicator is destroyed with registered memory");
  ++world.count.destroyed;
  end(*comm);
  return ncclSuccess;
}

/// Returns when the communicator's kernels have left their streams, and so after earlier work of these streams.
ncclResult_t comm_abort(ncclComm_t given) {
  using namespace std::chrono_literals;
  FakeWorld& world = FakeWorld::get();
  std::unique_lock lock(world.mutex);
  Comm* comm = of(given);
  if (comm->ended) {
    world.violated("ncclCommAbort on a communicator that has ended");
    return ncclInvalidArgument;
  }
  if (here.gpu != comm->process) world.violated("ncclCommAbort with another GPU than the communicator's");
  comm->aborted = true;
  ++world.count.aborts;
  if (comm->splitting && comm->guaranteed && !split_done(*comm)) {
    end(*comm->child);
    comm->child = nullptr;
  }
  if (comm->splitting) hand_out(*comm);
  end(*comm);
  while (!std::ranges::all_of(comm->under, is_over)) world.changed.wait_for(lock, 10ms); // streams may end unnotified
  return ncclSuccess;
}

ncclResult_t comm_register(ncclComm_t given, void*, std::size_t bytes, void** handle) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  if (injected("ncclCommRegister", of(given), result)) return result;
  Comm* comm = usable(given, "ncclCommRegister", result);
  if (!comm) return result;
  ++comm->blocks;
  ++world.count.registered;
  *handle = reinterpret_cast<void*>(bytes); // NOLINT(performance-no-int-to-ptr): opaque
  return ncclSuccess;
}

ncclResult_t comm_deregister(ncclComm_t given, void*) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  Comm* comm = usable(given, "ncclCommDeregister", result);
  if (!comm) return result;
  --comm->blocks;
  ++world.count.deregistered;
  return ncclSuccess;
}

} // namespace triax::test::fake
