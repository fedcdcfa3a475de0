// The fake's table: NCCL's calls.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "fake_world.hpp"
#include "support/fake_cuda_device.hpp"
#include "support/fake_cuda_memory.hpp"
#include "triax/text.hpp"

namespace triax::test {

namespace {

using fake::Call;
using fake::Clique;
using fake::Comm;
using fake::FakeWorld;
using fake::here;
using fake::kNotYet;
using fake::of;
using fake::submit;
using fake::Waiting;

/// Null where the call must not be.
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

ncclResult_t add_call(const char* name, ncclComm_t given, Call call, cudaStream_t stream) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  if (injected(name, of(given), result)) return result;
  Comm* comm = usable(given, name, result);
  if (!comm) return result;
  for (const void* data : {call.in, static_cast<const void*>(call.out)})
    if (data && fake_cuda::place_of(data) == fake_cuda::Place::plain)
      world.violated(text("{} with memory of the host", name));
  const Waiting one{comm, std::make_shared<Call>(call), stream};
  if (here.depth == 0) return submit({one});
  here.group.push_back(one);
  return ncclSuccess;
}

// The table.

ncclResult_t get_version(int* version) {
  *version = here.process.version;
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  ncclResult_t result = ncclSuccess;
  if (injected("ncclGetUniqueId", nullptr, result)) return result;
  std::memset(id, 0, sizeof *id);
  std::strcpy(id->internal, text("id {}", ++world.ids).c_str());
  return ncclSuccess;
}

const char* get_error_string(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInternalError:
      return "internal error";
    default:
      return "an error";
  }
}

const char* get_last_error(ncclComm_t comm) {
  return comm ? of(comm)->last_error.c_str() : FakeWorld::get().last_error.c_str();
}

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

/// All members have called the split: those of a color are a clique.
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
      Comm* comm = part.members[static_cast<std::size_t>(member)]; // until now by the member of the whole
      comm->member = static_cast<int>(ordered.size());
      ordered.push_back(comm);
    }
    part.members = ordered;
  }
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
    *made = child;
    ++world.count.splits;
  }
  comm->splitting = true;
  if (std::ranges::find(list, kNotYet) == list.end()) make_parts(clique, number);
  return ncclInProgress;
}

bool split_done(const Comm& comm) {
  const auto& list = comm.clique->splits[comm.split_calls - 1];
  return std::ranges::find(list, kNotYet) == list.end();
}

bool all_leave(const Clique& clique) {
  return std::ranges::all_of(
      clique.members, [](const Comm* member) { return !member || member->finalized || member->ended || member->dead; });
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
  if (comm->splitting) comm->splitting = !split_done(*comm);
  if (comm->waiting && fake::connected(*comm->waiting)) fake::launch(std::exchange(comm->waiting, nullptr));
  const bool leaving = comm->finalized && !((!comm->last || comm->last->over) && all_leave(*comm->clique));
  if (!comm->made || comm->splitting || comm->waiting || leaving) *state = ncclInProgress;
  if (comm->error != ncclSuccess) *state = comm->error; // of a kernel that was launched just now
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

void end(Comm& comm) {
  FakeWorld& world = FakeWorld::get();
  comm.ended = true;
  --world.count.alive;
  world.changed.notify_all();
}

ncclResult_t comm_destroy(ncclComm_t given) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  Comm* comm = of(given);
  if (comm->ended || !comm->finalized || (comm->last && !comm->last->over) || !all_leave(*comm->clique)) {
    world.violated("ncclCommDestroy on a communicator that has ended, or whose calls have not");
    return ncclInvalidUsage;
  }
  if (comm->blocks > 0) world.violated("a communicator is destroyed with registered memory");
  ++world.count.destroyed;
  end(*comm);
  return ncclSuccess;
}

ncclResult_t comm_abort(ncclComm_t given) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  Comm* comm = of(given);
  if (comm->ended) {
    world.violated("ncclCommAbort on a communicator that has ended");
    return ncclInvalidArgument;
  }
  comm->aborted = true;
  ++world.count.aborts;
  end(*comm);
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

ncclResult_t group_start() {
  ++here.depth;
  return ncclSuccess;
}

ncclResult_t group_end() {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  if (here.depth == 0) {
    world.violated("ncclGroupEnd without ncclGroupStart");
    return ncclInvalidUsage;
  }
  if (--here.depth > 0) return ncclSuccess;
  const std::vector<Waiting> group = std::exchange(here.group, {});
  ncclResult_t result = ncclSuccess;
  if (injected("ncclGroupEnd", group.empty() ? nullptr : group.front().comm, result)) return result;
  return submit(group);
}

ncclResult_t all_reduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t reduce,
                        ncclComm_t comm, cudaStream_t stream) {
  return add_call(
      "ncclAllReduce", comm,
      {.kind = Call::Kind::all_reduce, .in = in, .out = out, .count = count, .type = type, .reduce = reduce}, stream);
}

ncclResult_t reduce_scatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t reduce,
                            ncclComm_t comm, cudaStream_t stream) {
  return add_call(
      "ncclReduceScatter", comm,
      {.kind = Call::Kind::reduce_scatter, .in = in, .out = out, .count = count, .type = type, .reduce = reduce},
      stream);
}

ncclResult_t all_gather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                        cudaStream_t stream) {
  return add_call("ncclAllGather", comm,
                  {.kind = Call::Kind::all_gather, .in = in, .out = out, .count = count, .type = type}, stream);
}

ncclResult_t broadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return add_call("ncclBroadcast", comm,
                  {.kind = Call::Kind::broadcast, .in = in, .out = out, .count = count, .type = type, .peer = root},
                  stream);
}

ncclResult_t send(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return add_call("ncclSend", comm, {.kind = Call::Kind::send, .in = data, .count = count, .type = type, .peer = peer},
                  stream);
}

ncclResult_t recv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add_call("ncclRecv", comm, {.kind = Call::Kind::recv, .out = data, .count = count, .type = type, .peer = peer},
                  stream);
}

cudaStream_t launch_stream(Stream& stream) {
  return reinterpret_cast<cudaStream_t>(&fake_launch_stream(stream));
}

std::string gpu() {
  return here.process.gpu;
}

struct Mark {
  std::uint64_t put = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> passed = std::make_shared<std::atomic<std::uint64_t>>(0);
};

void* make_mark() {
  return new Mark;
}

void put_mark(void* mark, cudaStream_t stream) {
  auto* of_mark = static_cast<Mark*>(mark);
  reinterpret_cast<FakeCudaStream*>(stream)->enqueue([passed = of_mark->passed, number = ++of_mark->put] {
    std::uint64_t before = passed->load();
    while (before < number && !passed->compare_exchange_weak(before, number)) { // streams pass it in any order
    }
  });
}

bool passed(void* mark) {
  const auto* of_mark = static_cast<const Mark*>(mark);
  return of_mark->passed->load(std::memory_order_acquire) >= of_mark->put;
}

void free_mark(void* mark) {
  delete static_cast<Mark*>(mark);
}

void set_variable(const char* name, const char* value) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  world.count.variables.push_back(text("{} = {}", name, value));
  if (std::string_view(name) == "NCCL_HOSTID") world.have_host_id.insert(here.process.rank);
}

constexpr comm_nccl::NcclApi kFake = {
    .get_version = get_version,
    .get_unique_id = get_unique_id,
    .get_error_string = get_error_string,
    .get_last_error = get_last_error,
    .comm_init_rank_config = comm_init_rank_config,
    .comm_split = comm_split,
    .comm_get_async_error = comm_get_async_error,
    .comm_finalize = comm_finalize,
    .comm_destroy = comm_destroy,
    .comm_abort = comm_abort,
    .comm_register = comm_register,
    .comm_deregister = comm_deregister,
    .group_start = group_start,
    .group_end = group_end,
    .all_reduce = all_reduce,
    .reduce_scatter = reduce_scatter,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .send = send,
    .recv = recv,
    .launch_stream = launch_stream,
    .gpu = gpu,
    .make_mark = make_mark,
    .put_mark = put_mark,
    .passed = passed,
    .free_mark = free_mark,
    .set_variable = set_variable,
};

} // namespace

bool fake::Clique::complete() const {
  return std::ranges::find(members, nullptr) == members.end();
}

const comm_nccl::NcclApi& fake_nccl() {
  return kFake;
}

void enter(FakeProcess process) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  world.gpus[process.rank] = process.gpu;
  here = {};
  here.process = std::move(process);
}

void reset(const FakeRules& rules) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  world.rules = rules;
  world.wrong.clear();
  world.count = {};
  world.cliques.clear();
  world.on_gpu.clear();
  world.on_stream.clear();
  world.comms.clear();
  world.next.clear();
  world.gpus.clear();
  world.have_host_id.clear();
}

std::vector<std::string> violations() {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  return world.wrong;
}

void fail_later(int rank, ncclResult_t result, std::string why) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  for (const auto& comm : world.comms)
    if (comm->process == rank && !comm->ended) {
      comm->error = result;
      comm->last_error = why;
    }
}

void fail_next(int rank, std::string call, ncclResult_t result, std::string why) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  world.next[{rank, std::move(call)}] = {result, std::move(why)};
}

void die(int rank) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  for (const auto& comm : world.comms) {
    if (comm->process != rank || comm->ended) continue;
    for (Comm* member : comm->clique->members)
      if (member && member != comm.get() && !member->ended) {
        member->error = ncclRemoteError;
        member->last_error = "connection closed by remote peer";
      }
    comm->dead = true;
  }
  world.changed.notify_all();
}

FakeCounts counts() {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  return world.count;
}

} // namespace triax::test
