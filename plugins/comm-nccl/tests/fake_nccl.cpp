// SPDX-License-Identifier: Apache-2.0
// The function table of the fake NCCL.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "fake_communicators.hpp"
#include "support/fake_cuda_device.hpp"
#include "support/fake_cuda_memory.hpp"
#include "triax/text.hpp"

namespace triax::test {

namespace {

using fake::Call;
using fake::Comm;
using fake::FakeWorld;
using fake::here;
using fake::injected;
using fake::of;
using fake::submit;
using fake::usable;
using fake::Waiting;

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

struct FakeEvent {
  std::uint64_t recorded = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> done = std::make_shared<std::atomic<std::uint64_t>>(0);
};

void* make_event() {
  return new FakeEvent;
}

void record_event(void* event, cudaStream_t stream) {
  auto* fake = static_cast<FakeEvent*>(event);
  reinterpret_cast<FakeCudaStream*>(stream)->enqueue([done = fake->done, number = ++fake->recorded] {
    std::uint64_t before = done->load();
    while (before < number && !done->compare_exchange_weak(before, number)) { // streams may pass an event in any order
    }
  });
}

bool event_done(void* event) {
  const auto* fake = static_cast<const FakeEvent*>(event);
  return fake->done->load(std::memory_order_acquire) >= fake->recorded;
}

void free_event(void* event) {
  delete static_cast<FakeEvent*>(event);
}

void set_variable(const char* name, const char* value) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  world.count.variables.push_back(text("{} = {}", name, value));
  if (std::string_view(name) == "NCCL_HOSTID") world.have_host_id.insert(here.process.rank);
}

constexpr triax::comm_nccl::NcclApi kFake = {
    .get_version = get_version,
    .get_unique_id = get_unique_id,
    .get_error_string = get_error_string,
    .get_last_error = get_last_error,
    .comm_init_rank_config = fake::comm_init_rank_config,
    .comm_split = fake::comm_split,
    .comm_get_async_error = fake::comm_get_async_error,
    .comm_finalize = fake::comm_finalize,
    .comm_destroy = fake::comm_destroy,
    .comm_abort = fake::comm_abort,
    .comm_register = fake::comm_register,
    .comm_deregister = fake::comm_deregister,
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
    .current_gpu = [] { return here.gpu; },
    .use_gpu = [](int number) { here.gpu = number; },
    .make_event = make_event,
    .record_event = record_event,
    .event_done = event_done,
    .free_event = free_event,
    .set_variable = set_variable,
};

} // namespace

bool fake::Clique::complete() const {
  return std::ranges::find(members, nullptr) == members.end();
}

const triax::comm_nccl::NcclApi& fake_nccl() {
  return kFake;
}

void enter(FakeProcess process) {
  FakeWorld& world = FakeWorld::get();
  const std::lock_guard lock(world.mutex);
  world.gpus[process.rank] = process.gpu;
  here = {};
  here.gpu = process.rank;
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
